#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstddef>

#include "daemon/model/bytes/cached_bytes.h"

namespace millrace {
namespace {

TEST_CASE("a kept block has the bytes it was made of, and zeroes behind them", "[model]") {
  const std::array bytes{std::byte{1}, std::byte{2}, std::byte{3}};

  const CachedBytes kept = CachedBlock::copy_of(bytes, CachedBlock::kPadding);

  REQUIRE(std::equal(bytes.begin(), bytes.end(), kept->view().begin(), kept->view().end()));
  const std::byte* const behind = kept->view().data() + kept->size();
  REQUIRE(std::all_of(behind, behind + CachedBlock::kPadding, [](std::byte b) { return b == std::byte{0}; }));
  REQUIRE(kept->footprint() == 3 + CachedBlock::kPadding);
}

TEST_CASE("a kept block of nothing can be asked for its bytes", "[model]") {
  REQUIRE(CachedBlock::copy_of({})->view().empty());
}

}  // namespace
}  // namespace millrace
