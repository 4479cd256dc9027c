// The memory that all lanes together may take for large pictures.
#include <unistd.h>
#include <catch2/catch.hpp>

#include "tests/integration/holding_backend.h"
#include "tests/integration/pipeline_fixture.h"
#include "tests/integration/pipeline_work.h"
#include "tests/support/host/eventually.h"
#include "tests/support/host/temp_folder.h"

namespace millrace {
namespace {

// 0, 3, 6, ... are headers that claim 4000x4000 pixels, which take 48 MB; the others are small.
constexpr std::uint32_t kMemoryFiles = 24, kLargeFiles = 8;
void write_every_third_large(const TempFolder& folder) {
  write_images(folder.path(), kMemoryFiles);
  for (std::uint32_t i = 0; i < kMemoryFiles; i += 3)
    write_bytes(folder / (std::to_string(1000 + i).substr(1) + ".jpg"), make_png_header(4000, 4000));
}

std::shared_ptr<const Recipe> squeezed() {
  return std::make_shared<Recipe>(Recipe{.resize = ExactSize{{16, 16}}});
}

struct Setup {
  Setup() {
    write_every_third_large(folder);
    PipelineSetup setup{.roots = {folder.path()}, .decoding = 120_MiB};
    auto holding =
        std::make_unique<HoldingBackend>(8, kMemoryFiles);  // so many lanes that each sample is a job of its own
    backend = holding.get();
    setup.backend = std::move(holding);
    fixture.emplace(std::move(setup));
  }
  std::int64_t charged() { return fixture->counters().stored(MetricId::decoding_in_use); }
  std::int64_t made() { return fixture->counters().stored(MetricId::samples_completed); }

  TempFolder folder;
  HoldingBackend* backend = nullptr;
  std::optional<PipelineFixture> fixture;
};

}  // namespace

TEST_CASE("large pictures take turns within the budget, and small ones do not wait for them",
          "[pipeline][integration]") {
  Setup setup;
  REQUIRE(setup.fixture->submit(request_of(setup.folder.path(), kMemoryFiles, squeezed())).has_value());

  const bool all_small = eventually([&] {
    setup.backend->finish_small();
    REQUIRE(setup.backend->large() <= 2);
    return setup.made() == kMemoryFiles - kLargeFiles;
  });
  REQUIRE(all_small);
  const bool all_large = eventually([&] {
    REQUIRE(setup.charged() <= static_cast<std::int64_t>((120_MiB).count));
    REQUIRE(setup.backend->large() <= 2);
    setup.backend->finish_large();
    return setup.made() == kMemoryFiles;
  });
  REQUIRE(all_large);

  REQUIRE(setup.fixture->sink().wait_completed().failures.empty());
  REQUIRE(setup.charged() == 0);
}

TEST_CASE("a batch that is cancelled while its large pictures wait lets go of its slot", "[pipeline][integration]") {
  Setup setup;
  REQUIRE(setup.fixture->submit(request_of(setup.folder.path(), kMemoryFiles, squeezed())).has_value());
  BatchRequest second = request_of(setup.folder.path(), kMemoryFiles, squeezed());
  second.id = BatchId{2};
  REQUIRE(eventually([&] { return setup.backend->large() > 0; }));
  REQUIRE(setup.fixture->submit(std::move(second)).has_value());
  REQUIRE(eventually(
      [&] { return setup.backend->finish_small() == 0 && setup.made() == 2 * (kMemoryFiles - kLargeFiles); }));

  setup.fixture->on_control([&] { setup.fixture->pipeline().cancel(PipelineFixture::kSession, BatchId{2}); });

  REQUIRE(setup.fixture->sink().wait_failed().error.code == Code::kCancelled);
  REQUIRE(eventually([&] { return setup.fixture->free_slots() == 2; }));
}

TEST_CASE("what a session holds is its user's, and is given back when the session ends", "[pipeline][integration]") {
  Setup setup;
  const auto account = setup.fixture->ledger().account({UserId{::geteuid()}, PipelineFixture::kSession});
  const auto held = [&](Resource resource, Bound of) {
    return setup.fixture->on_control([&] { return account->in_use(resource, of); });
  };
  const auto nothing_held = [&] {
    for (const Resource resource : {Resource::kEncoded, Resource::kDecoding}) {
      for (const Bound of : {Bound::kSession, Bound::kUser, Bound::kTotal}) {
        if (held(resource, of) != 0) return false;
      }
    }
    return true;
  };
  REQUIRE(setup.fixture->submit(request_of(setup.folder.path(), kMemoryFiles, squeezed())).has_value());
  REQUIRE(eventually([&] { return setup.backend->large() > 0; }));
  for (const Bound of : {Bound::kSession, Bound::kUser, Bound::kTotal}) {
    REQUIRE(held(Resource::kEncoded, of) > 0);
    REQUIRE(held(Resource::kDecoding, of) > 0);
  }

  setup.fixture->close();
  const bool all_back = eventually([&] {
    setup.backend->finish_all();
    return nothing_held();
  });

  REQUIRE(all_back);
  REQUIRE(setup.charged() == 0);
  REQUIRE(setup.fixture->counters().stored(MetricId::encoded_in_flight) == 0);
}

TEST_CASE("a picture that needs more than the budget is an error that says how much", "[pipeline][integration]") {
  TempFolder folder;
  write_images(folder.path(), 4);
  write_bytes(folder / "002.jpg", make_png_header(13'000, 13'000));
  PipelineFixture fixture({.roots = {folder.path()}, .decoding = 64_MiB});
  BatchRequest request = request_of(folder.path(), 4, squeezed());
  request.on_error = OnError::kSkip;

  REQUIRE(fixture.submit(std::move(request)).has_value());
  const CompletedBatch batch = fixture.sink().wait_completed();

  REQUIRE(batch.failures.size() == 1);
  REQUIRE(batch.failures[0].error.code == Code::kExhausted);
  REQUIRE_THAT(batch.failures[0].error.message,
               Catch::Contains("memory.decoding") && Catch::Contains("67.1 MB") && Catch::Contains("takes 5"));
  REQUIRE(batch.tensor->samples == 3);
}

}  // namespace millrace
