// How much of a folder tree is listed at once.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "daemon/fetch/list/listing.h"
#include "tests/support/host/temp_folder.h"
#include "tests/support/pictures/image_folder.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

struct Listed {
  std::uint32_t steps = 0;
  std::vector<std::string> paths;
};

Listed list(const std::string& folder) {
  const auto roots = *Roots::open({.folders = {folder}});
  Listing listing(*roots, {.path_untrusted = folder,
                           .caller = std::make_shared<const Caller>(Caller{.uid = geteuid(), .gid = getegid()}),
                           .max_files = 1'000'000});
  Listed listed;
  while (true) {
    ++listed.steps;
    const std::optional<Listing::Outcome> outcome = listing.step();
    if (!outcome) continue;
    REQUIRE(outcome->has_value());
    const Dataset& dataset = ***outcome;
    for (std::uint64_t i = 0; i < dataset.samples(); ++i) listed.paths.emplace_back(dataset.relative_path(SampleId{i}));
    return listed;
  }
}

TEST_CASE("a large folder is listed in several steps, and in the same order as ever", "[fetch]") {
  constexpr std::uint32_t kFiles = 3 * Listing::kStep;
  const TempFolder top;
  for (const char* name : {"a", "m", "z"}) fs::create_directories(top / name);
  write_file(top / "a/before.jpg", std::string("x"));
  std::vector<std::string> expected{"a/before.jpg"};
  for (std::uint32_t i = 0; i < kFiles; ++i) {
    expected.push_back("m/" + std::to_string(10'000 + i) + ".jpg");
    write_file(top / expected.back(), std::string("x"));
  }
  write_file(top / "z/after.jpg", std::string("x"));
  expected.emplace_back("z/after.jpg");

  const Listed listed = list(top.path());

  CHECK(listed.steps >= 6);
  CHECK(listed.paths == expected);
}

TEST_CASE("links, which lead anywhere, are followed a few a step", "[fetch]") {
  constexpr std::uint32_t kLinks = 40;
  const TempFolder top;
  write_file(top / "a.jpg", std::string("x"));
  for (std::uint32_t i = 0; i < kLinks; ++i)
    fs::create_symlink("a.jpg", top / ("link" + std::to_string(10 + i) + ".jpg"));

  const Listed listed = list(top.path());

  CHECK(listed.steps >= kLinks * Listing::kLinkCounts / Listing::kStep);
  CHECK(listed.paths.size() == kLinks + 1);
}

}  // namespace
}  // namespace millrace
