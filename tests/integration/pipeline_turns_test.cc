// Whose samples go to the lanes next when several users' wait, seen by a backend that keeps its jobs.
#include <catch2/catch.hpp>

#include "tests/integration/holding_backend.h"
#include "tests/integration/pipeline_fixture.h"
#include "tests/integration/pipeline_work.h"
#include "tests/support/test_images.h"

namespace millrace {
namespace {

// A batch of equal images of so many pixels a side, in one session of one user.
BatchRequest batch_of(std::uint32_t count, std::size_t side) {
  const std::vector<std::byte> jpeg = make_jpeg({.pixels = make_pixels(side, side, 3, 1)});
  Recipe recipe;
  recipe.resize = ExactSize{{8, 8}};
  BatchRequest request{.id = BatchId{1}, .recipe = std::make_shared<const Recipe>(recipe)};
  for (std::uint32_t i = 0; i < count; ++i) {
    request.samples.push_back(SampleRequest{
        .id = SampleId{i}, .source = InlineSource{{reinterpret_cast<const char*>(jpeg.data()), jpeg.size()}}});
  }
  return request;
}

TEST_CASE("a user whose images cost much gets fewer of them made, not more of the lanes", "[pipeline][integration]") {
  constexpr std::uint32_t kDear = 16, kCheap = 64;
  auto holding = std::make_unique<HoldingBackend>(1);
  HoldingBackend* const backend = holding.get();
  PipelineFixture fixture({.backend = std::move(holding)});
  CollectingSink others;
  fixture.open_another(SessionId{2}, UserId{4321}, others);
  const BatchRequest dear = batch_of(kDear, 600), cheap = batch_of(kCheap, 16);
  REQUIRE(fixture.submit(dear));
  REQUIRE(fixture.on_control([&] { return fixture.pipeline().submit(SessionId{2}, cheap); }));
  fixture.wait_until_nothing_is_read();

  const auto given = [&](const BatchRequest& request) {
    const auto all = backend->given();
    return std::count_if(all.begin(), all.end(), [&](const auto& one) { return one.recipe == request.recipe; });
  };
  while (given(cheap) < kCheap) {
    backend->finish_all();
    fixture.on_control([] {});  // after what that posted
  }

  CHECK(given(dear) >= 1);
  CHECK(given(dear) <= kDear / 2);
}

}  // namespace
}  // namespace millrace
