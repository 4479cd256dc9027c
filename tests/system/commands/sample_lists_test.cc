// Lists of samples in a folder's place: `millrace run`, `preview` and `cache warm`.
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/host/temp_folder.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/system/support/command.h"

namespace millrace {
namespace {

// Pictures in a shard, and a list of them; the last one is a file of its own, whose name is no UTF-8.
struct ListedShard {
  static constexpr std::size_t kListed = 9;

  ListedShard() {
    const TempFolder pictures;
    std::string shard;
    for (const std::string& path : write_image_folder(pictures.path(), {.images = kListed, .classes = 0})) {
      const std::vector<std::byte> bytes = read_file(path);
      if (lines.size() + 1 == kListed) {
        write_file(folder / "data/\xE9.jpg", bytes);
        lines.emplace_back(R"({"path": "data/\udce9.jpg"})");
        continue;
      }
      shard.append(512, 'h');
      lines.push_back(R"({"path": "data/shard.tar", "offset": )" + std::to_string(shard.size()) + R"(, "length": )" +
                      std::to_string(bytes.size()) + R"(, "label": 3, "member": "a.jpg"})");
      shard.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    write_file(folder / "data/shard.tar", shard);
  }
  std::string list(const std::string& name = "list.jsonl") const {
    std::string text;
    for (const std::string& line : lines) text += line + '\n';
    write_file(folder / name, text);
    return folder / name;
  }

  TempFolder folder;
  bool made = std::filesystem::create_directory(folder / "data");
  std::vector<std::string> lines;
};

}  // namespace

TEST_CASE("run, preview and cache warm go through a list", "[system]") {
  const ListedShard shard;
  const std::string list = shard.list(), sheet = shard.folder / "sheet.png";

  const Ran ran = run({"millrace", "run", "--private", "--dataset", list, "--size", "32", "--batch", "4", "--shuffle",
                       "--on-error", "fail", "--json"});
  const Ran shown = run({"millrace", "preview", "--private", list, "-n", "3", "-o", sheet});
  const Ran warmed = run({"millrace", "cache", "warm", "--private", shard.list("unnamed"), "--json"});

  CAPTURE(ran.errors, shown.errors, warmed.errors);
  REQUIRE(ran.status == 0);
  CHECK_THAT(ran.output, Catch::Contains("\"images\":9"));
  REQUIRE(shown.status == 0);
  CHECK_THAT(shown.output, Catch::Contains("3 samples"));
  REQUIRE(warmed.status == 0);
  CHECK_THAT(warmed.output, Catch::Contains("\"images\":9"));
}

TEST_CASE("shards in the place of a folder: the message says how a list of them is made", "[system]") {
  const TempFolder folder;
  write_file(folder / "a.tar", std::string(1024, '\0'));

  for (const std::string& given : {folder.path(), folder / "a-*.tar", folder / "a.tar"}) {
    const Ran ran = run({"millrace", "run", "--private", "--dataset", given, "--size", "32"});
    CAPTURE(ran.errors);
    CHECK(ran.status == 1);
    CHECK_THAT(ran.errors, Catch::Contains("`python -m millrace list SOURCE -o FILE` writes one of shards and tables"));
  }
}

TEST_CASE("a list's wrong line ends a run, and a missing part is a bad sample by its name", "[system]") {
  ListedShard shard;
  shard.lines.insert(shard.lines.begin() + 1, R"({"path": "data/shard.tar", "offset": 1000000000, "length": 7})");
  const Ran beyond =
      run({"millrace", "run", "--private", "--dataset", shard.list(), "--size", "32", "--on-error", "skip"});
  shard.lines.insert(shard.lines.begin() + 4, R"({"path": "data/shard.tar", "offset": 3})");
  const std::string list = shard.list();
  const Ran wrong = run({"millrace", "run", "--private", "--dataset", list, "--size", "32"});
  const Ran empty = run({"millrace", "run", "--private", "--dataset", shard.folder / "none.jsonl", "--size", "32"});
  const Ran chosen = run({"millrace", "cache", "warm", "--private", list, "--extension", "jpg"});
  const Ran image = run({"millrace", "run", "--private", "--dataset", shard.folder / "data/shard.tar"});

  CAPTURE(beyond.errors, wrong.errors);
  CHECK(beyond.status == 0);
  CHECK_THAT(beyond.errors,
             Catch::Contains("shard.tar[1000000000+7]") && Catch::Contains("has changed since it was listed"));
  CHECK(wrong.status == 1);
  CHECK_THAT(wrong.errors, Catch::Contains(list + ":5: length: is missing"));
  CHECK(empty.status == 1);
  CHECK_THAT(empty.errors, Catch::Contains("No such file"));
  CHECK_THAT(chosen.errors, Catch::Contains("--extension: a list names its samples itself"));
  CHECK(image.status == 1);
  CHECK_THAT(image.errors, Catch::Contains("or a list of samples"));
}

}  // namespace millrace
