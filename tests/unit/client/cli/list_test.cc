// Lists of samples that the command line reads.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "client/cli/list/list_file.h"
#include "client/cli/list/list_line.h"
#include "tests/support/host/temp_folder.h"
#include "tests/support/pictures/image_folder.h"

using namespace millrace;
using namespace millrace::cli;

namespace {

Result<ListedFile> sample_in(std::string line) {
  line.push_back('\0');
  return parse_list_line(line.data());
}

std::string wrong_in(const std::string& line) {
  const Result<ListedFile> sample = sample_in(line);
  REQUIRE_FALSE(sample.has_value());
  CHECK(sample.error().code == Code::kInvalid);
  return sample.error().message;
}

struct ListOnDisk {
  explicit ListOnDisk(const std::string& text, const std::string& name = "list.jsonl") : path(folder / name) {
    write_file(path, text);
  }
  // The first error, or "".
  std::string read(std::vector<ListedFile>& samples) const {
    Result<ListFile> list = ListFile::open(path);
    REQUIRE(list.has_value());
    while (true) {
      Result<std::optional<ListedFile>> sample = list->next();
      if (!sample) return sample.error().message;
      if (!*sample) return "";
      samples.push_back(**sample);
    }
  }

  TempFolder folder;
  std::string path;
};

}  // namespace

TEST_CASE("a line of a list is a sample, whatever else it says", "[cli]") {
  const ListedFile part =
      *sample_in(R"( {"label": -3, "path": "/data/s.tar", "offset": 1536, "length": 48211, "text": "a", "n": 0.5} )");
  const ListedFile whole =
      *sample_in(R"({"path": "a\u00e4\"\\.jpg", "label": null, "offset": null, "deep": {"path": 7, "x": [1, {}]}})");
  const ListedFile empty = *sample_in(R"({"path": "/s", "offset": 0, "length": 0})");

  CHECK(part.path == "/data/s.tar");
  CHECK(part.range == FileRange{1'536, 48'211});
  CHECK(part.label == -3);
  CHECK(whole.path == "a\xC3\xA4\"\\.jpg");
  CHECK_FALSE(whole.range);
  CHECK(whole.label == -1);
  CHECK(empty.range == FileRange{0, 0});
}

TEST_CASE("a path's bytes that are no UTF-8 come back as Python's escapes say them", "[cli]") {
  CHECK(sample_in(R"({"path": "/d/\udcff\udc80\udce9.jpg"})")->path == "/d/\xFF\x80\xE9.jpg");
  CHECK(sample_in(R"({"path": "/d/\ud83d\udc1f.jpg"})")->path == "/d/\xF0\x9F\x90\x9F.jpg");  // a pair: a fish
  CHECK(sample_in("{\"path\": \"/d/\xFF.jpg\"}")->path == "/d/\xFF.jpg");
}

TEST_CASE("a line that is no sample says what is wrong with it", "[cli]") {
  CHECK_THAT(wrong_in("[1]"), Catch::Contains("must be a JSON object"));
  CHECK_THAT(wrong_in("7"), Catch::Contains("must be a JSON object"));
  CHECK_THAT(wrong_in(R"({"path": "a")"), Catch::Contains("is no JSON") && Catch::Contains("At byte"));
  CHECK_THAT(wrong_in(R"({"path": "a"} {})"), Catch::Contains("is no JSON"));
  CHECK_THAT(wrong_in("{}"), Catch::Contains("path: is missing"));
  CHECK_THAT(wrong_in(R"({"path": ""})"), Catch::Contains("path: is missing"));
  CHECK_THAT(wrong_in(R"({"path": 7})"), Catch::Contains("path: must be a text"));
  CHECK_THAT(wrong_in(R"({"path": ["a"]})"), Catch::Contains("path: must be a text"));
  CHECK_THAT(wrong_in(R"({"path": "a\u0000b"})"), Catch::Contains("zero byte"));
  CHECK_THAT(wrong_in(R"({"path": "a", "offset": 3})"), Catch::Contains("length: is missing"));
  CHECK_THAT(wrong_in(R"({"path": "a", "length": 3})"), Catch::Contains("offset: is missing"));
  CHECK_THAT(wrong_in(R"({"path": "a", "offset": -1, "length": 3})"),
             Catch::Contains("offset: must be a whole number"));
  CHECK_THAT(wrong_in(R"({"path": "a", "offset": 1.5, "length": 3})"),
             Catch::Contains("offset: must be a whole number"));
  CHECK_THAT(wrong_in(R"({"path": "a", "offset": 1, "length": "3"})"),
             Catch::Contains("length: must be a whole number"));
  CHECK_THAT(wrong_in(R"({"path": "a", "offset": 1, "length": 9223372036854775807})"), Catch::Contains("below 2^63"));
  CHECK_THAT(wrong_in(R"({"path": "a", "offset": 1, "length": 18446744073709551615})"), Catch::Contains("below 2^63"));
  CHECK_THAT(wrong_in(R"({"path": "a", "label": 9223372036854775808})"), Catch::Contains("label: must be below 2^63"));
  CHECK_THAT(wrong_in(R"({"path": "a", "label": 0.5})"), Catch::Contains("label: must be a whole number"));
  CHECK_THAT(wrong_in(std::string(60'000, '[')), Catch::Contains("must be a JSON object"));
  CHECK_THAT(wrong_in(R"({"x": )" + std::string(60'000, '[')), Catch::Contains("is nested too deeply"));
}

TEST_CASE("a list is read line by line, and a wrong line is named with its number", "[cli]") {
  const ListOnDisk list("{\"path\": \"a.jpg\"}\r\n\n  \n{\"path\": \"/x/../y//b.jpg\", \"offset\": 1, \"length\": 2}");
  std::vector<ListedFile> samples;

  REQUIRE(list.read(samples).empty());
  REQUIRE(samples.size() == 2);
  CHECK(samples[0].path == list.folder / "a.jpg");
  CHECK(samples[1].path == "/y/b.jpg");
  CHECK(ListOnDisk("{\"path\": \"a\"}\n\n{\"path\": 3}\n").read(samples) != "");
  const ListOnDisk wrong("{\"path\": \"a\"}\n\n{\"path\": 3}\n");
  CHECK(wrong.read(samples) == wrong.path + ":3: path: must be a text");
  const ListOnDisk zero(std::string("{\"path\": \"a\"}\0\n", 15));
  CHECK(zero.read(samples) == zero.path + ":1: has a zero byte");
  const ListOnDisk longer(std::string(ListFile::kLongestLine + 1, ' ') + "\n");
  CHECK_THAT(longer.read(samples), Catch::Contains(":1: is longer than 65536 bytes"));
}

TEST_CASE("a file is a list by its name or by its first byte", "[cli]") {
  CHECK(ListFile::is_one(ListOnDisk("", "a.jsonl").path));
  CHECK(ListFile::is_one(ListOnDisk("", "a.ndjson").path));
  CHECK(ListFile::is_one(ListOnDisk("{\"path\": \"a\"}\n", "list").path));
  CHECK_FALSE(ListFile::is_one(ListOnDisk("\xFF\xD8", "a.jpg").path));
  CHECK_FALSE(ListFile::is_one(ListOnDisk("", "empty").path));
}

TEST_CASE("a private daemon reads what all files of a list have in common", "[cli]") {
  const auto common = [](const std::string& text) { return *common_folder_of(ListOnDisk(text).path); };

  CHECK(common("{\"path\": \"/data/a/1.jpg\"}\n{\"path\": \"/data/ab/2.jpg\"}\n") == "/data");
  CHECK(common("{\"path\": \"/data/a/1.jpg\"}\n{\"path\": \"/data/a/b/2.jpg\"}\n") == "/data/a");
  CHECK(common("{\"path\": \"/data/a/b/1.jpg\"}\n{\"path\": \"/data/a/b\"}\n") == "/data/a");
  CHECK(common("{\"path\": \"/data/1.jpg\"}\n{\"path\": \"/etc/2.jpg\"}\n") == "/");
}

TEST_CASE("samples are spread evenly over a list", "[cli]") {
  std::string text;
  for (int i = 0; i < 10; ++i) text += "{\"path\": \"/d/" + std::to_string(i) + "\"}\n";
  const ListOnDisk list(text);

  const std::vector<ListedSample> some = *spread_over(list.path, 4);
  REQUIRE(some.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(some[i].position == i * 10 / 4);
    CHECK(some[i].file.path == "/d/" + std::to_string(some[i].position));
  }
  CHECK(spread_over(list.path, 400)->size() == 10);
  CHECK(spread_over(ListOnDisk("\n").path, 4).error().code == Code::kNotFound);
}
