#include "daemon/pipeline/batch/batch.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <memory>

#include "daemon/pipeline/epoch/epoch_run.h"
#include "daemon/pipeline/epoch/outstanding.h"

namespace millrace {
namespace {

constexpr Bytes kFile{100};

struct CountingOwner final : Batch::Owner {
  void unused(BatchPtr batch) override { told.push_back(std::move(batch)); }
  std::vector<BatchPtr> told;
};

// Batches of four squeezed pictures without a pipeline around them.
struct Rig {
  BatchPtr batch(Packing packing = Packing::kOneSize) {
    Recipe recipe{.packing = packing};
    if (packing == Packing::kOneSize) recipe.resize = ExactSize{{8, 8}};
    BatchRequest request{.recipe = std::make_shared<const Recipe>(recipe)};
    for (std::uint32_t i = 0; i < 4; ++i)
      request.samples.push_back({.id = SampleId{i}, .source = PathSource{"/x/" + std::to_string(i)}});
    auto layout = *TensorLayout::create(request.recipe, 1000);
    return std::make_shared<Batch>(session, std::move(request), std::move(layout), nullptr, around);
  }

  // A sample that is being read gets to where a lane has it.
  static void make(Batch& batch, std::uint32_t index) {
    EncodedImage image{EncodedBytes(kFile.count), SourceInfo{.stored = {40, 30}}, std::nullopt};
    REQUIRE(batch.lay_out(index, image.info).has_value());
    const SampleTask task = batch.wait(index, std::move(image));
    batch.make({&task, 1});
  }

  Bytes held() const { return {ledger.in_use(Resource::kEncoded)}; }

  Counters counters;
  Ledger ledger{budgets_of({}, {.encoded = 1_MiB}), &counters};
  CountingOwner owner;
  std::shared_ptr<OpenSession> session = std::make_shared<OpenSession>(
      OpenSession{.id = SessionId{1}, .parts = {.account = ledger.account({UserId{1000}, SessionId{1}})}});
  Batch::Surroundings around{owner, counters, 1, Limits{.sample = {.side = 1000}}};
};

// Whether `step` ends the process, as a bug of ours does.
template <class Step>
bool aborts(Step step) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    ::signal(SIGABRT, SIG_DFL);
    ::close(STDERR_FILENO);
    step();
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

Error broken() {
  return {Code::kInvalid, "broken"};
}

}  // namespace

TEST_CASE("the lowest-numbered bad sample is known when all before it are made", "[pipeline]") {
  Rig rig;
  const BatchPtr batch = rig.batch();
  batch->take_unread(4);
  for (std::uint32_t i = 0; i < 4; ++i) Rig::make(*batch, i);

  REQUIRE_FALSE(batch->first_bad_is_known());
  batch->give_up(3, broken());
  REQUIRE_FALSE(batch->first_bad_is_known());
  batch->made(0);
  REQUIRE_FALSE(batch->first_bad_is_known());
  batch->try_elsewhere(1, {Code::kUnavailable, "to be tried elsewhere"});
  REQUIRE_FALSE(batch->first_bad_is_known());
  batch->give_up(2, broken());
  REQUIRE_FALSE(batch->first_bad_is_known());
  batch->give_up(1, broken());
  REQUIRE(batch->first_bad_is_known());
}

TEST_CASE("no bad sample is known in a batch without any", "[pipeline]") {
  Rig rig;
  const BatchPtr batch = rig.batch();
  for (const std::uint32_t i : batch->take_unread(4)) {
    Rig::make(*batch, i);
    batch->made(i);
  }

  REQUIRE_FALSE(batch->first_bad_is_known());
  REQUIRE(batch->finished() == 4);
  REQUIRE(batch->failures().empty());
}

TEST_CASE("what a backend said of a sample that goes elsewhere is no failure of it", "[pipeline]") {
  Rig rig;
  const BatchPtr batch = rig.batch();
  batch->take_unread(4);
  Rig::make(*batch, 0);

  batch->try_elsewhere(0, {Code::kUnavailable, "the device is lost"});

  REQUIRE(batch->sample(0).tried == 1);
  REQUIRE(batch->failures().empty());
}

TEST_CASE("samples that were not read are read again before those that never were", "[pipeline]") {
  Rig rig;
  const BatchPtr batch = rig.batch();

  REQUIRE(batch->take_unread(2) == std::vector<std::uint32_t>{0, 1});
  batch->put_back_unread(1);
  REQUIRE(batch->take_unread(2) == std::vector<std::uint32_t>{1, 2});
  REQUIRE(batch->count(SampleState::kUnread) == 1);
  REQUIRE(batch->not_read() == 4);
}

TEST_CASE("encoded bytes are held until a sample is made or given up, and by a batch that ends no more", "[pipeline]") {
  Rig rig;
  const BatchPtr batch = rig.batch();
  batch->take_unread(4);
  for (std::uint32_t i = 0; i < 3; ++i) Rig::make(*batch, i);
  REQUIRE(rig.held() == kFile * 3);

  batch->made(0);
  REQUIRE(rig.held() == kFile * 2);
  batch->give_up(1, broken());
  REQUIRE(rig.held() == kFile);
  batch->fail();
  batch->end();

  REQUIRE(rig.held() == Bytes{0});
  REQUIRE(rig.counters.stored(MetricId::encoded_in_flight) == 0);
}

TEST_CASE("deferred samples let their bytes go when asked to, and are read again once they have their places",
          "[pipeline]") {
  Rig rig;
  const BatchPtr batch = rig.batch(Packing::kPacked);
  for (const std::uint32_t i : batch->take_unread(4)) {
    const SourceInfo info{.stored = {40 + i, 30}};
    REQUIRE(batch->lay_out(i, info).has_value());
    batch->defer(i, EncodedImage{EncodedBytes(kFile.count), info, std::nullopt});
    if (i == 1) batch->drop_deferred();
  }
  REQUIRE(rig.held() == kFile * 2);

  const std::vector<SampleTask> kept = batch->place_deferred();

  REQUIRE(kept.size() == 2);
  REQUIRE(kept[0].index == 2);
  REQUIRE(batch->has_places());
  REQUIRE(batch->count(SampleState::kUnread) == 2);
  REQUIRE(batch->sample(1).place->offset % kPackedAlignment == 0);
  REQUIRE_FALSE(batch->lay_out(batch->take_unread(1)[0], SourceInfo{.stored = {7, 7}}).has_value());
}

TEST_CASE("a failing batch is unused when the last that would call back about it has gone", "[pipeline]") {
  Rig rig;
  const BatchPtr batch = rig.batch();
  Outstanding<InFlight> out;
  const std::uint32_t first = out.add(InFlight(batch));
  const std::uint32_t second = out.add(InFlight(batch));

  batch->fail();
  out.take(second);
  REQUIRE(rig.owner.told.empty());
  REQUIRE(batch->in_flight());
  out.take(first);

  REQUIRE(rig.owner.told == std::vector<BatchPtr>{batch});
  REQUIRE_FALSE(batch->in_flight());
  batch->end();
  REQUIRE(rig.owner.under_way() == 0);
}

TEST_CASE("a step that a sample or a batch cannot take is a bug of ours", "[pipeline]") {
  Rig rig;
  const BatchPtr batch = rig.batch();
  batch->take_unread(1);
  Rig::make(*batch, 0);
  batch->made(0);

  REQUIRE(aborts([&] { batch->made(0); }));               // twice
  REQUIRE(aborts([&] { batch->give_up(0, broken()); }));  // after it was made
  REQUIRE(aborts([&] { batch->put_back_unread(1); }));    // nobody reads it
  REQUIRE(aborts([&] { batch->end(); }));                 // without having been finalized or failed
  REQUIRE(aborts([&] {
    const InFlight held(batch);
    batch->fail();
    batch->end();  // somebody may still write
  }));
  REQUIRE_FALSE(aborts([&] { batch->fail(); }));
}

}  // namespace millrace
