// A lane's samples by way of the cache.
#include <atomic>
#include <catch2/catch.hpp>
#include <future>
#include <thread>

#include "daemon/backend/cpu/cpu_backend.h"
#include "daemon/backend/cpu/making/cached_maker.h"
#include "daemon/formats/probe.h"
#include "daemon/plan/draw_geometry.h"
#include "tests/support/pictures/test_images.h"

namespace millrace {
namespace {

struct Rig {
  explicit Rig(Bytes memory = 16_MiB) : cache({.memory = memory, .disk = Bytes{0}, .state_dir = ""}, counters) {}

  Counters counters;
  ImageCache cache;
  ImageWorkspace workspace{JpegPath::kFastest, {}, &cache};
  CachedMaker maker{workspace, Limits{}, kernels::best_target()};
  const Recipe recipe = Recipe::evaluate(40, 32);
  CacheWish wish{.tensor_of = 5};
  std::vector<std::byte> out = std::vector<std::byte>(3 * 32 * 32);
  std::vector<std::byte> file = make_jpeg({.pixels = make_pixels(120, 90, 3, 1)});

  SampleTask task(bool with_bytes = true) {
    EncodedBytes bytes(file.size());
    std::copy(file.begin(), file.end(), bytes.writable().begin());
    const auto info = probe_image(bytes.view(), SampleLimits{}, UseOrientation::kYes);
    REQUIRE(info.has_value());
    const auto geometry = draw_geometry(recipe, {}, *info, {}, 1000);
    REQUIRE(geometry.has_value());
    return {.index = 3,
            .image = {.bytes = with_bytes ? std::move(bytes) : EncodedBytes(),
                      .info = *info,
                      .identity = FileIdentity{.inode = 1, .size = file.size()},
                      .stable = true,
                      .wish = wish},
            .geometry = *geometry,
            .out = in_host_memory(out)};
  }
  SampleOutcome make(SampleTask task) { return maker.make(task, recipe, Fidelity::kExact); }
  std::vector<std::byte> made() {
    REQUIRE_FALSE(make(task()).error);
    return out;
  }
};

}  // namespace

TEST_CASE("the second time a tensor is kept, and copied from then on", "[backend]") {
  Rig rig;
  const std::vector<std::byte> first = rig.made();
  REQUIRE(rig.counters.stored(MetricId::cache_first_touches) == 1);
  REQUIRE(rig.made() == first);
  std::fill(rig.out.begin(), rig.out.end(), std::byte{9});

  SampleTask unread = rig.task(false);
  unread.image.kept = rig.cache.find(*unread.image.identity, unread.image.wish)->kept;
  const SampleOutcome outcome = rig.make(std::move(unread));

  REQUIRE_FALSE(outcome.error);
  REQUIRE(outcome.index == 3);
  REQUIRE(rig.out == first);
  REQUIRE(rig.counters.stored(MetricId::cache_hits) >= 1);
}

TEST_CASE("what is kept and no use is forgotten, and the image made of its bytes, or read again", "[backend]") {
  for (const CachedKind kind : {CachedKind::kTensor, CachedKind::kPacked}) {
    Rig rig;
    if (kind == CachedKind::kPacked) rig.wish.most = CacheUse::kPacked;
    const std::vector<std::byte> expected = rig.made();
    const auto wrong = [&](bool with_bytes) {
      SampleTask task = rig.task(with_bytes);
      const SampleTask whole = rig.task();
      keep(rig.cache, whole.image, key_of(whole.image, rig.cache.seed()), kind,
           CachedBlock::copy_of(std::vector<std::byte>(100), CachedBlock::kPadding));
      if (!with_bytes) task.image.kept = rig.cache.find(*task.image.identity, task.image.wish)->kept;
      return task;
    };

    const SampleOutcome with = rig.make(wrong(true));
    REQUIRE_FALSE(with.error);
    REQUIRE(rig.out == expected);
    const SampleOutcome without = rig.make(wrong(false));

    REQUIRE(without.error);
    REQUIRE(without.read_again);
    REQUIRE(rig.counters.stored(MetricId::cache_rejected) == 2);
    REQUIRE_FALSE(rig.cache.find(*rig.task().image.identity, rig.task().image.wish));
  }
}

TEST_CASE("an image is packed after it was handed over, by its second access or where lanes are idle", "[backend]") {
  const auto packed = [](Rig& rig) {
    const SampleTask task = rig.task();
    return rig.cache.find(key_of(task.image, rig.cache.seed()), CachedKind::kPacked).has_value();
  };
  const auto no = [] { return false; };
  const auto yes = [] { return true; };
  const auto touch = [](Rig& rig) {
    SampleTask task = rig.task();
    task.image.wish.most = CacheUse::kPacked;
    REQUIRE_FALSE(rig.make(std::move(task)).error);
  };
  Rig busy, idle, stopping;

  touch(busy);
  busy.maker.finish(no, no);
  REQUIRE_FALSE(packed(busy));
  touch(busy);
  REQUIRE_FALSE(packed(busy));
  busy.maker.finish(no, no);
  REQUIRE(packed(busy));
  touch(idle);
  idle.maker.finish(yes, no);
  REQUIRE(packed(idle));
  touch(stopping);
  touch(stopping);
  stopping.maker.finish(yes, yes);
  REQUIRE_FALSE(packed(stopping));
}

TEST_CASE("what a dataset's epochs want packed is packed first, and made of that", "[backend]") {
  Rig plain, rig;
  plain.wish = rig.wish = {.most = CacheUse::kPacked};
  const std::vector<std::byte> expected = plain.made();
  rig.wish.at_once = true;
  rig.wish.member = {.dataset = DatasetNumber{1}, .sample = 4};
  SampleTask task = rig.task();
  const CacheKey key = key_of(task.image, rig.cache.seed());

  const SampleOutcome outcome = rig.make(std::move(task));

  REQUIRE_FALSE(outcome.error);
  REQUIRE(outcome.unpacked == WhyUnpacked::kNotSaid);
  REQUIRE(rig.out == expected);
  REQUIRE(rig.cache.find(key, CachedKind::kPacked));
  REQUIRE_FALSE(rig.cache.find(key, CachedKind::kIndex));  // which decoding the file makes
  REQUIRE(rig.counters.stored(MetricId::cache_first_touches) == 1);
  REQUIRE(rig.counters.stored(MetricId::cache_hits) == 0);
  REQUIRE(rig.made() == expected);
  REQUIRE(rig.counters.stored(MetricId::cache_hits) == 1);
}

TEST_CASE("an image of a dataset is packed at its second access without a seek index", "[backend]") {
  Rig rig;
  rig.wish = {.most = CacheUse::kPacked, .member = {.dataset = DatasetNumber{1}}};
  rig.file = make_jpeg({.pixels = make_pixels(320, 240, 3, 1)});
  const CacheKey key = key_of(rig.task().image, rig.cache.seed());
  const std::vector<std::byte> first = rig.made();
  REQUIRE_FALSE(rig.cache.find(key, CachedKind::kIndex));
  REQUIRE_FALSE(rig.cache.find(key, CachedKind::kPacked));

  REQUIRE(rig.made() == first);

  REQUIRE(rig.cache.find(key, CachedKind::kPacked));
  REQUIRE(rig.counters.stored(MetricId::cache_first_touches) == 2);  // both came from the file alone
  REQUIRE(rig.counters.stored(MetricId::cache_hits) == 0);
  REQUIRE(rig.counters.stored(MetricId::cache_made) == 1);
  REQUIRE(rig.counters.stored(MetricId::cache_saved) == 0);
}

TEST_CASE("an image that cannot be packed is made of its bytes, and not tried again", "[backend]") {
  Rig rig, plain;
  rig.wish = plain.wish = {.most = CacheUse::kPacked};
  rig.file = plain.file = make_jpeg({.pixels = make_pixels(120, 90, 3, 1), .h_samp = 4, .v_samp = 1});
  const std::vector<std::byte> expected = plain.made();
  rig.wish.at_once = true;
  rig.wish.member.dataset = DatasetNumber{1};
  const SampleTask task = rig.task();
  const CacheKey key = key_of(task.image, rig.cache.seed());
  REQUIRE(rig.cache.advise(task.image, key).make == Advice::kPackNow);

  const SampleOutcome first = rig.make(rig.task()), second = rig.make(rig.task());

  REQUIRE_FALSE(first.error);
  REQUIRE(rig.out == expected);
  REQUIRE(first.unpacked == WhyUnpacked::kNoForm);
  REQUIRE(second.unpacked == WhyUnpacked::kNoForm);
  REQUIRE(rig.cache.advise(task.image, key).make == Advice::kNothing);
  REQUIRE_FALSE(rig.cache.find(key, CachedKind::kPacked));
}

TEST_CASE("an image of which nobody wants the sample while it is packed can be packed another time", "[backend]") {
  Rig rig;
  rig.wish = {.most = CacheUse::kPacked, .at_once = true, .member = {.dataset = DatasetNumber{1}}};
  rig.file = make_jpeg({.pixels = make_pixels(320, 240, 3, 1)});
  SampleTask task = rig.task();
  const CacheKey key = key_of(task.image, rig.cache.seed());
  StopFlag stop;
  stop.stop();

  const SampleOutcome outcome = rig.maker.make(task, rig.recipe, Fidelity::kExact, stop);

  REQUIRE(outcome.error);
  REQUIRE(outcome.error->code == Code::kCancelled);
  REQUIRE_FALSE(rig.cache.find(key, CachedKind::kPacked));
  rig.made();
  REQUIRE(rig.cache.find(key, CachedKind::kPacked));
}

TEST_CASE("an image that another lane is packing is made of its bytes where there is nothing else to make",
          "[backend]") {
  Rig rig;
  rig.wish = {.most = CacheUse::kPacked, .at_once = true, .member = {.dataset = DatasetNumber{1}}};
  const CacheKey key = key_of(rig.task().image, rig.cache.seed());
  const BeingMade::Turn somebodys = *rig.cache.being_made().begin(key);

  rig.made();

  REQUIRE_FALSE(rig.cache.find(key, CachedKind::kPacked));
  REQUIRE(rig.cache.find(key, CachedKind::kIndex));
}

TEST_CASE("a lane leaves what another one is making for the end of its job", "[backend]") {
  Rig rig;
  rig.wish.most = CacheUse::kPacked;
  const std::unique_ptr<Backend> backend = *CpuBackend::create({.lanes = 1}, {.cache = &rig.cache});
  std::vector<std::vector<std::byte>> tensors(3, rig.out);
  DecodeJob job;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    SampleTask& task = job.tasks.emplace_back(rig.task());
    task.image.identity->inode = i + 1;
    task.out = in_host_memory(tensors[i]);
  }
  job.recipe = std::make_shared<const Recipe>(rig.recipe);
  std::promise<std::vector<SampleOutcome>> done;
  job.done = [&](std::vector<SampleTask>, std::vector<SampleOutcome> outcomes) { done.set_value(std::move(outcomes)); };
  const BeingMade::Turn somebodys =
      *rig.cache.being_made().begin(key_of(*job.tasks[0].image.identity, rig.cache.seed()));

  REQUIRE(backend->try_submit(std::move(job)));
  const std::vector<SampleOutcome> outcomes = done.get_future().get();

  REQUIRE(outcomes.size() == 3);
  for (const SampleOutcome& outcome : outcomes) REQUIRE_FALSE(outcome.error);
  REQUIRE(outcomes[1].queued < outcomes[2].queued);
  REQUIRE(outcomes[2].queued < outcomes[0].queued);
  REQUIRE(tensors[0] == tensors[1]);
  REQUIRE(somebodys.is_wanted());
}

// Comes for the thing all the time; how often somebody was at it.
class Wanting {
 public:
  Wanting(BeingMade& being_made, const CacheKey& key)
      : thread_([this, &being_made, key](const std::stop_token& ended) {
          for (; !ended.stop_requested(); ++asked_) met_ += being_made.want(key) ? 1 : 0;
        }) {
    while (asked_ == 0) std::this_thread::yield();
  }
  std::uint64_t met() const { return met_; }

 private:
  std::atomic<std::uint64_t> asked_{0}, met_{0};
  std::jthread thread_;
};

TEST_CASE("a tensor that another lane came for is kept the first time", "[backend]") {
  Rig rig;
  const SampleTask task = rig.task();
  const CacheKey key = tensor_key_of(key_of(task.image, rig.cache.seed()), rig.wish.tensor_of);
  BeingMade& being_made = rig.cache.being_made();
  REQUIRE_FALSE(rig.maker.is_being_made(task));
  {
    const BeingMade::Turn turn = *being_made.begin(key);
    REQUIRE_FALSE(turn.is_wanted());
    REQUIRE(rig.maker.is_being_made(task));
    REQUIRE(turn.is_wanted());
  }
  REQUIRE_FALSE(rig.maker.is_being_made(task));

  const auto is_kept = [&] { return rig.cache.find(key, CachedKind::kTensor).has_value(); };
  const Wanting wanting(being_made, key);
  for (int i = 0; i < 1000 && !is_kept(); ++i) {
    REQUIRE(rig.cache.drop({.memory = true, .disk = false}).has_value());
    rig.made();
  }
  REQUIRE(is_kept());
}

TEST_CASE("a tensor is kept by the lane whose turn it is, and only where it finds room", "[backend]") {
  Rig rig;
  const CacheKey key = tensor_key_of(key_of(rig.task().image, rig.cache.seed()), rig.wish.tensor_of);
  const auto is_kept = [&] { return rig.cache.find(key, CachedKind::kTensor).has_value(); };
  {
    const BeingMade::Turn somebodys = *rig.cache.being_made().begin(key);
    rig.made();
    REQUIRE(somebodys.is_wanted());
    rig.made();
    REQUIRE_FALSE(is_kept());
  }
  rig.made();
  REQUIRE(is_kept());

  Rig full(Bytes{1024});
  const CacheKey fulls = tensor_key_of(key_of(full.task().image, full.cache.seed()), full.wish.tensor_of);
  const Wanting wanting(full.cache.being_made(), fulls);
  for (int i = 0; i < 200; ++i) full.made();
  REQUIRE(wanting.met() == 0);
}

}  // namespace millrace
