// Lists of parts of files: the messages that they become, and daemons that know none.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "client/src/part_list.h"
#include "millrace/client.h"
#include "tests/unit/client/scripted_daemon.h"

using namespace std::chrono_literals;
using namespace std::string_literals;
using millrace::Client;
using millrace::Code;
using millrace::FileRange;
using millrace::FileStamp;
using millrace::ListedFile;
using millrace::PartList;
using millrace::Session;
using millrace::test::ScriptedDaemon;
namespace v1 = millrace::v1;

namespace {

constexpr std::uint64_t kTillItsEnd = ~std::uint64_t{0};

void add_all(PartList& list, const std::vector<ListedFile>& files) {
  for (const ListedFile& file : files) REQUIRE(list.add(file));
}

template <class Numbers>
std::vector<std::uint64_t> as_vector(const Numbers& numbers) {
  return {numbers.begin(), numbers.end()};
}

// Of a daemon from before there were parts.
v1::Vocabulary without_parts() {
  v1::Vocabulary vocabulary = millrace::own_vocabulary();
  const auto forget = [&](const std::string& message, std::uint32_t number) {
    for (auto& fields : *vocabulary.mutable_messages()) {
      auto& numbers = *fields.mutable_numbers();
      if (fields.message() == message)
        numbers.erase(std::remove(numbers.begin(), numbers.end(), number), numbers.end());
    }
  };
  forget("ClientMessage", v1::ClientMessage::kListPartsFieldNumber);
  forget("Sample", v1::Sample::kPartFieldNumber);
  return vocabulary;
}

}  // namespace

TEST_CASE("a list of parts says each path once, in the message that first needs it", "[client]") {
  PartList list(7, "/data");

  add_all(list, {{"/data/a.tar", 3, FileRange{512, 9}}, {"/data/b.tar", 4, FileRange{0, 0}}, {"/data/a.tar", -1}});
  const v1::ListParts first = list.take(false);
  add_all(list, {{"/data/b.tar", 5, FileRange{7, 1}}, {"/data/c.jpg", 6}});
  const v1::ListParts last = list.take(true);

  CHECK(first.dataset_id() == 7);
  CHECK(first.folder() == "/data");
  CHECK(first.paths() == "a.tar\0b.tar\0"s);
  CHECK(as_vector(first.files()) == std::vector<std::uint64_t>{0, 1, 0});
  CHECK(as_vector(first.offsets()) == std::vector<std::uint64_t>{512, 0, 0});
  CHECK(as_vector(first.lengths()) == std::vector<std::uint64_t>{9, 0, kTillItsEnd});
  CHECK(first.labels(2) == -1);
  CHECK(first.sizes().empty());
  CHECK_FALSE(first.last());
  CHECK(last.dataset_id() == 7);
  CHECK(last.folder().empty());
  CHECK(last.paths() == "c.jpg\0"s);
  CHECK(as_vector(last.files()) == std::vector<std::uint64_t>{1, 2});
  CHECK(last.last());
  CHECK(list.samples() == 5);
}

TEST_CASE("a file's stamp goes with its path, and what it has is bounded before it is sent", "[client]") {
  PartList list(7, "/");
  const FileStamp stamp{4'096, -5};

  add_all(list, {{"/a", 0, FileRange{0, 1}, stamp}, {"/a", 0, FileRange{1, 1}, stamp}, {"/b", 0, {}, FileStamp{1, 2}}});
  const std::size_t bound = list.bytes();
  CHECK(bound + 16 >= list.take(false).ByteSizeLong());  // beside the dataset and the folder
  add_all(list, {{"/a", 0, FileRange{2, 1}, stamp}, {"/c", 0, {}, FileStamp{3, 4}}});
  const v1::ListParts more = list.take(true);
  const auto unstamped = list.add({"/d", 0, FileRange{0, 1}});
  const auto too_long = list.add({"/a", 0, FileRange{1, (std::uint64_t{1} << 63U) - 1}, stamp});

  CHECK(as_vector(more.sizes()) == std::vector<std::uint64_t>{3});
  CHECK(more.modified_ns(0) == 4);
  CHECK(more.paths() == "c\0"s);
  CHECK_THAT(unstamped.error().message, Catch::Contains("stamp"));
  CHECK_THAT(too_long.error().message, Catch::Contains("below 2^63"));
}

TEST_CASE("parts are refused before they are asked of a daemon that knows none", "[client]") {
  const ScriptedDaemon daemon({.vocabulary = without_parts()});
  auto client = Client::connect(daemon.socket());
  REQUIRE(client);
  auto session = client->open_session({.slot_bytes = millrace::Bytes{64 * 1024}, .timeout = 30s});
  REQUIRE(session);
  const std::vector<ListedFile> parts{{"/data/a.tar", 0, FileRange{0, 9}}};

  const auto listed = session->open_files(parts);
  const auto submitted = session->submit({.samples = {{.source = millrace::FilePart{"/data/a.tar", 0, 9}}}});

  REQUIRE_FALSE(listed);
  CHECK(listed.error().code == Code::kUnsupported);
  CHECK_THAT(listed.error().message, Catch::Contains("does not know ClientMessage.list_parts"));
  CHECK(submitted.error().code == Code::kUnsupported);
  CHECK_THAT(submitted.error().message, Catch::Contains("does not know Sample.part"));
}
