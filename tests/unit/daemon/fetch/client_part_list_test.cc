// Datasets of parts of files that a client lists itself.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "daemon/fetch/list/client_file_list.h"
#include "tests/support/host/temp_folder.h"

namespace millrace {
namespace {

using namespace std::string_literals;

constexpr std::uint64_t kWholeFile = ~std::uint64_t{0};

struct PartListRig {
  TempFolder temp;
  std::unique_ptr<Roots> roots = *Roots::open({.folders = {temp.path()}});
  Bytes charged;  // the most that was asked for

  ClientFileList::Outcome run(std::vector<FilesPart> parts) {
    ClientFileList list(*roots, {.path_untrusted = temp.path(),
                                 .files = std::move(parts),
                                 .caller = std::make_shared<const Caller>(),
                                 .room = [this](Bytes bytes) -> Result<void> {
                                   charged = std::max(charged, bytes);
                                   return {};
                                 }});
    while (true) {
      if (std::optional<ClientFileList::Outcome> outcome = list.step()) return *std::move(outcome);
    }
  }
  std::shared_ptr<const Dataset> made(std::vector<FilesPart> parts) {
    ClientFileList::Outcome outcome = run(std::move(parts));
    REQUIRE(outcome.has_value());
    return *outcome;
  }
  std::string refusal(FilesPart part) {
    const ClientFileList::Outcome outcome = run({std::move(part)});
    REQUIRE_FALSE(outcome.has_value());
    CHECK(outcome.error().code == Code::kInvalid);
    return outcome.error().message;
  }
};

FilesPart part_of(std::string paths, RangesInFiles ranges, std::vector<std::int64_t> labels = {}) {
  return {.paths_untrusted = std::move(paths), .labels = std::move(labels), .ranges_untrusted = std::move(ranges)};
}

}  // namespace

TEST_CASE("a list of parts says where each sample lies, whatever messages it came in", "[fetch]") {
  PartListRig rig;

  const auto whole =
      rig.made({part_of("a.tar\0b.tar\0"s, {{1, 0, 1, 0}, {512, 7, 0, 9}, {10, 0, kWholeFile, 3}}, {5, 6, -7, 8})});
  const auto parted =
      rig.made({part_of("a.tar\0"s, {{}, {}, {}}), part_of("b.tar\0"s, {{1, 0}, {512, 7}, {10, 0}}, {5, 6}),
                part_of("", {{1, 0}, {0, 9}, {kWholeFile, 3}}, {-7, 8})});

  REQUIRE(whole->samples() == 4);
  CHECK(whole->locate(SampleId{0}) == Dataset::Location{rig.temp / "b.tar", Dataset::Range{512, 10_B}});
  CHECK(whole->locate(SampleId{1}) == Dataset::Location{rig.temp / "a.tar", Dataset::Range{7, 0_B}});
  CHECK(whole->locate(SampleId{2}) == Dataset::Location{rig.temp / "b.tar", std::nullopt});
  CHECK(whole->label(SampleId{2}) == -7);
  CHECK(*parted == *whole);
}

TEST_CASE("another range, file or order is another dataset; another numbering of the files is not", "[fetch]") {
  PartListRig rig;
  const auto fingerprint = [&](const std::string& paths, RangesInFiles ranges) {
    return rig.made({part_of(paths, std::move(ranges))})->fingerprint();
  };
  const std::uint64_t list = fingerprint("a\0b\0"s, {{0, 1}, {1, 2}, {3, 4}});

  CHECK(fingerprint("b\0a\0"s, {{1, 0}, {1, 2}, {3, 4}}) == list);
  CHECK(fingerprint("a\0b\0"s, {{0, 1}, {1, 3}, {3, 4}}) != list);
  CHECK(fingerprint("a\0b\0"s, {{0, 1}, {1, 2}, {3, 5}}) != list);
  CHECK(fingerprint("a\0b\0"s, {{0, 0}, {1, 2}, {3, 4}}) != list);
  CHECK(fingerprint("a\0b\0"s, {{1, 0}, {2, 1}, {4, 3}}) != list);
}

TEST_CASE("what a file had when it was listed goes with its samples", "[fetch]") {
  PartListRig rig;
  const Dataset::Stamp of_a{100_B, 1'000}, of_c{300_B, -3'000};

  const auto list =
      rig.made({part_of("a\0"s, {{0}, {1}, {1}, {of_a}}), part_of("b\0"s, {{1, 0}, {0, 2}, {kWholeFile, 2}}),
                part_of("c\0"s, {{2}, {0}, {kWholeFile}, {of_c}})});

  CHECK(list->locate(SampleId{0}).stamp == of_a);
  CHECK_FALSE(list->locate(SampleId{1}).stamp);
  CHECK(list->locate(SampleId{2}).stamp == of_a);
  CHECK(list->locate(SampleId{3}).stamp == of_c);
}

TEST_CASE("a sample takes at most 34 bytes and each path its own once, which is charged", "[fetch]") {
  PartListRig rig;
  constexpr std::uint32_t kSamples = 10'000;
  RangesInFiles ranges;
  for (std::uint32_t i = 0; i < kSamples; ++i) {
    ranges.files.push_back(i % 2);
    ranges.offsets.push_back(std::uint64_t{i} * 512);
    ranges.lengths.push_back(512);
  }

  const auto list = rig.made({part_of("shard-a.tar\0shard-b.tar\0"s, std::move(ranges))});

  CHECK(list->memory().count <= kSamples * 34);
  CHECK(rig.charged >= list->memory() - Bytes{sizeof(Dataset) + 4'096});
}

TEST_CASE("a range or a number that is none is refused, and the sample named", "[fetch]") {
  PartListRig rig;
  constexpr std::uint64_t kEnd = std::uint64_t{1} << 63U;

  CHECK_THAT(rig.refusal(part_of("a\0"s, {{0, 1}, {0, 0}, {1, 1}})),
             Catch::Contains("sample 1: file 1 is none of the 1 files"));
  CHECK_THAT(rig.refusal(part_of("a\0"s, {{0, 0}, {0, 1}, {1, kEnd - 1}})),
             Catch::Contains("sample 1: offset + length must be below 2^63"));
  CHECK_THAT(rig.refusal(part_of("a\0"s, {{0}, {1}, {kWholeFile}})), Catch::Contains("below 2^63"));
  CHECK_THAT(rig.refusal(part_of("a\0"s, {{0}, {kEnd}, {0}})), Catch::Contains("below 2^63"));
  CHECK_THAT(rig.refusal(part_of("a\0"s, {{0}, {0, 1}, {1}})), Catch::Contains("must be as many"));
  CHECK_THAT(rig.refusal(part_of("a\0"s, {{0}, {0}, {1}}, {1, 2})), Catch::Contains("must be as many"));
  CHECK_THAT(rig.refusal(part_of("a\0"s, {{0}, {0}, {1}, {{}, {}}})), Catch::Contains("sizes: must be as many"));
  CHECK_THAT(rig.refusal(part_of("a\0b/../c\0"s, {{0}, {0}, {1}})), Catch::Contains("file 1 \""));
  CHECK(rig.made({part_of("a\0"s, {{0}, {1}, {kEnd - 2}})})->samples() == 1);
}

}  // namespace millrace
