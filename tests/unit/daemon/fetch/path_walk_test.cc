// How long a walk may take. What links lead to, roots_test.cc and without_openat2_test.cc show.
#include <fcntl.h>

#include <catch2/catch.hpp>
#include <string>

#include "daemon/fetch/open/path_walk.h"
#include "daemon/fetch/open/refusals.h"
#include "tests/unit/daemon/fetch/tree.h"

namespace millrace {
namespace {

// Everything beneath one folder, which is "/" to the walk.
class Beneath final : public WalkRules {
 public:
  explicit Beneath(const std::string& folder) : root_(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {}

  Result<Start> start(std::string_view path) const override {
    return Start{.keep = nullptr, .root = root_.get(), .rest = path.substr(1)};
  }
  bool may_search(int, const struct stat&) const override { return true; }
  Error refused() const override { return not_readable(); }

 private:
  const UniqueFd root_;
};

TEST_CASE("links that make a long way are followed for so long and no longer, and a short way as long as it takes",
          "[fetch]") {
  const Tree tree;
  std::string round;
  for (std::size_t i = 0; i < PathWalk::kStepsGranted; ++i) round += "a/../";
  std::filesystem::create_symlink(round + "a/b/file", tree / "long");
  std::filesystem::create_symlink("/a/b/file", tree / "short");
  const Beneath rules(tree.root);
  constexpr std::chrono::nanoseconds kOver{-1};  // before the first step

  const auto short_one = PathWalk(rules, kOver).walk("/short");
  const auto long_one = PathWalk(rules, kOver).walk("/long");
  const auto without_limit = PathWalk(rules).walk("/long");

  REQUIRE(short_one);
  REQUIRE_FALSE(long_one);
  REQUIRE(long_one.error().code == Code::kInvalid);
  REQUIRE_THAT(long_one.error().message, Catch::Contains("takes too long to follow"));
  REQUIRE(without_limit);
}

}  // namespace
}  // namespace millrace
