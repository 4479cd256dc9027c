// Datasets of files that a client lists itself.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "daemon/fetch/list/client_file_list.h"
#include "tests/support/host/temp_folder.h"

namespace millrace {
namespace {

struct OwnListRig {
  TempFolder temp;
  std::unique_ptr<Roots> roots = *Roots::open({.folders = {temp.path()}});

  ListTask task(std::vector<FilesPart> parts, std::string folder = {}) const {
    return {.path_untrusted = folder.empty() ? temp.path() : std::move(folder),
            .files = std::move(parts),
            .caller = std::make_shared<const Caller>()};
  }
  ClientFileList::Outcome run(ListTask task) const {
    ClientFileList list(*roots, std::move(task));
    while (true) {
      if (std::optional<ClientFileList::Outcome> outcome = list.step()) return *std::move(outcome);
    }
  }
  std::shared_ptr<const Dataset> made(std::vector<FilesPart> parts, std::string folder = {}) const {
    ClientFileList::Outcome outcome = run(task(std::move(parts), std::move(folder)));
    REQUIRE(outcome.has_value());
    return *outcome;
  }
};

std::string zeros(std::string text) {  // '|' stands for a zero byte
  for (char& letter : text) letter = letter == '|' ? '\0' : letter;
  return text;
}

}  // namespace

TEST_CASE("a client's list is a dataset in its own order, whatever parts it came in", "[fetch]") {
  const OwnListRig rig;

  const auto whole = rig.made({{zeros("b/2.jpg|a.jpg|b/2.jpg|"), {7, -3, 1'000'000'000'000}}});
  const auto parted = rig.made({{zeros("b/2.jpg|"), {7}}, {zeros("a.jpg|b/2.jpg|"), {-3, 1'000'000'000'000}}});

  REQUIRE(whole->samples() == 3);
  CHECK(whole->locate(SampleId{0}).file == rig.temp / "b/2.jpg");
  CHECK(whole->locate(SampleId{1}).file == rig.temp / "a.jpg");
  CHECK(whole->relative_path(SampleId{2}) == "b/2.jpg");
  CHECK(whole->label(SampleId{1}) == -3);
  CHECK(whole->label(SampleId{2}) == 1'000'000'000'000);
  CHECK(whole->classes().empty());
  CHECK(whole->number() != DatasetNumber::kNone);
  CHECK(*parted == *whole);
}

TEST_CASE("another order of the same files is another dataset, other labels alone are not for a position", "[fetch]") {
  const OwnListRig rig;

  const auto list = rig.made({{zeros("a|b|"), {1, 2}}});
  const auto turned = rig.made({{zeros("b|a|"), {2, 1}}});
  const auto labelled = rig.made({{zeros("a|b|"), {1, 3}}});

  CHECK(turned->fingerprint() != list->fingerprint());
  CHECK(labelled->fingerprint() == list->fingerprint());
  CHECK(*labelled != *list);
}

TEST_CASE("a list without labels has -1, and one beneath / works", "[fetch]") {
  const OwnListRig rig;
  const std::string path = (rig.temp / "x.jpg").substr(1);

  const auto list = rig.made({{path + '\0', {}}}, "/");

  CHECK(list->label(SampleId{0}) == -1);
  CHECK(list->locate(SampleId{0}).file == rig.temp / "x.jpg");
}

TEST_CASE("a path that is none, or lies beneath no root, is named with its number", "[fetch]") {
  const OwnListRig rig;
  struct Bad {
    std::string paths, folder, text;
    Code code = Code::kInvalid;
  };
  const std::vector<Bad> table{
      {"a||", "", "sample 1"},
      {"a|/b|", "", "without empty components"},
      {"a|b/../c|", "", "sample 1"},
      {"./a|", "", "without empty components"},
      {"a|b/|", "", "without empty components"},
      {"a|b", "", "no zero byte"},
      {std::string(5'000, 'x') + "|", "", "must have 1 to 4096 bytes"},
      {"a|", "/etc", "sample 0 \"/etc/a\": not readable", Code::kDenied},
      {"a|", rig.temp / "..", "folder: must be absolute"},
      {"etc/passwd|", "/", "they are " + rig.temp.path(), Code::kDenied},
      {"", "", "the list is empty", Code::kNotFound},
  };

  for (const Bad& bad : table) {
    CAPTURE(bad.paths, bad.folder);
    const ClientFileList::Outcome outcome = rig.run(rig.task({{zeros(bad.paths), {}}}, bad.folder));
    REQUIRE_FALSE(outcome.has_value());
    CHECK(outcome.error().code == bad.code);
    CHECK_THAT(outcome.error().message, Catch::Contains(bad.text));
  }
}

TEST_CASE("labels that are not as many as paths are refused", "[fetch]") {
  const OwnListRig rig;

  CHECK(rig.run(rig.task({{zeros("a|b|"), {1}}})).error().code == Code::kInvalid);
  CHECK(rig.run(rig.task({{zeros("a|"), {1, 2}}})).error().code == Code::kInvalid);
}

TEST_CASE("a list that there is no room for, or that nobody wants any more, ends so", "[fetch]") {
  const OwnListRig rig;
  ListTask large = rig.task({{zeros("a|b|"), {}}});
  large.room = [](Bytes) -> Result<void> { return Error{Code::kExhausted, "no room"}; };
  const auto stop = std::make_shared<StopFlag>();
  stop->stop();
  ListTask unwanted = rig.task({{zeros("a|b|"), {}}});
  unwanted.stop = stop;

  CHECK(rig.run(std::move(large)).error().message == "no room");
  CHECK(rig.run(std::move(unwanted)).error().code == Code::kCancelled);
}

}  // namespace millrace
