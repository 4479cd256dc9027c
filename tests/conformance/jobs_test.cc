// What a backend does about jobs: bounds, exactly once, cancellation, shutdown, loss of the device.
#include <algorithm>
#include <atomic>
#include <set>

#include "proto/base/backend_name.h"
#include "tests/conformance/bench_of_backend.h"
#include "tests/support/host/eventually.h"
#include "tests/support/skip.h"

namespace millrace {
namespace {

bool made_or(const SampleOutcome& outcome, Code code) {
  return !outcome.error || outcome.error->code == code;
}

// Whether every outcome of every job is a success or `code`.
bool all_made_or(const std::vector<Finished>& finished, Code code) {
  return std::all_of(finished.begin(), finished.end(), [&](const Finished& job) {
    return std::all_of(job.outcomes.begin(), job.outcomes.end(),
                       [&](const SampleOutcome& outcome) { return made_or(outcome, code); });
  });
}

}  // namespace

TEST_CASE("a job beyond depth is refused and left as it was, and every accepted one is done exactly once",
          "[conformance]") {
  for (const BackendUnderTest& row : testable_backends()) {
    INFO(row.name);
    Collector collector;
    const std::unique_ptr<Backend> backend = start(row, {.lanes = 2, .fake = "delay_us=20000"});
    std::vector<JobOnTheBench> benches = small_jobs(200, 6, 300);
    std::size_t accepted = 0;
    std::optional<DecodeJob> refused;
    for (JobOnTheBench& bench : benches) {
      DecodeJob job = bench.job(collector);
      if (!backend->try_submit(std::move(job))) {
        refused = std::move(job);
        break;
      }
      ++accepted;
    }

    REQUIRE(refused);
    REQUIRE(accepted >= backend->queue_depth().jobs);
    REQUIRE(refused->tasks.size() == 6);
    REQUIRE(refused->tasks[5].image.bytes.size() > 0);
    REQUIRE(refused->recipe);
    REQUIRE(refused->done);
    collector.wait_for(accepted);
    REQUIRE(backend->try_submit(*std::move(refused)));
    collector.wait_for(1);
    backend->shutdown();
    REQUIRE(collector.count() == 0);
  }
}

TEST_CASE("the next job may be submitted as soon as one is told done", "[conformance]") {
  for (const BackendUnderTest& row : testable_backends()) {
    INFO(row.name);
    const std::unique_ptr<Backend> backend = start(row, {.lanes = 1, .fake = "depth=1"});
    std::vector<JobOnTheBench> benches = small_jobs(backend->queue_depth().jobs + 30, 1);
    Collector collector;
    std::atomic<std::size_t> next = 0;
    std::atomic<int> refusals = 0;
    std::function<void()> submit = [&] {
      const std::size_t index = next++;
      if (index >= benches.size()) return;
      DecodeJob job = benches[index].job(collector);
      job.done = [&, keep = std::move(job.done)](std::vector<SampleTask> tasks, std::vector<SampleOutcome> outcomes) {
        submit();
        keep(std::move(tasks), std::move(outcomes));
      };
      if (!backend->try_submit(std::move(job))) ++refusals;
    };

    for (std::uint32_t i = 0; i < backend->queue_depth().jobs; ++i) submit();

    collector.wait_for(benches.size());
    REQUIRE(refusals == 0);
  }
}

TEST_CASE("an urgent job has a place of its own, goes before jobs that wait, and one that runs makes way",
          "[conformance]") {
  for (const BackendUnderTest& row : testable_backends()) {
    const std::unique_ptr<Backend> backend = start(row, {.lanes = 1});
    const QueueDepth depth = backend->queue_depth();
    if (depth.urgent == 0) continue;
    INFO(row.name);
    const auto made_way = [&] {  // in the time of a job of 30 samples
      Collector collector, urgent;
      std::vector<JobOnTheBench> benches = small_jobs(depth.jobs + 2, 30, 200);
      for (std::uint32_t i = 0; i < depth.jobs; ++i) REQUIRE(backend->try_submit(benches[i].job(collector)));
      DecodeJob job = benches.back().job(urgent);
      job.urgent = true;
      const bool is_full = !backend->try_submit(benches[depth.jobs].job(collector));
      REQUIRE(backend->try_submit(std::move(job)));
      const Finished passed = urgent.wait_for_one();
      const bool others_wait = collector.count() < depth.jobs;
      for (const SampleOutcome& outcome : passed.outcomes) REQUIRE_FALSE((outcome.error || outcome.not_begun));
      const std::vector<Finished> others = collector.wait_for(depth.jobs + (is_full ? 0 : 1));
      const auto not_begun = [](const SampleOutcome& outcome) { return outcome.not_begun; };
      return is_full && others_wait && std::ranges::any_of(others.front().outcomes, not_begun) &&
             !others.front().outcomes.front().not_begun && std::ranges::none_of(others.back().outcomes, not_begun);
    };

    REQUIRE(eventually(made_way));
  }
}

TEST_CASE("a stopped job's samples come back as cancelled and write nothing", "[conformance]") {
  for (const BackendUnderTest& row : testable_backends()) {
    INFO(row.name);
    const std::unique_ptr<Backend> backend = start(row, {.lanes = 1});
    std::vector<JobOnTheBench> benches = small_jobs(2, 20, 200);
    Collector before, during;
    benches[0].stop->stop();

    REQUIRE(backend->try_submit(benches[0].job(before)));
    REQUIRE(backend->try_submit(benches[1].job(during)));
    benches[1].stop->stop();

    const Finished stopped = before.wait_for_one();
    for (const SampleOutcome& outcome : stopped.outcomes) {
      REQUIRE(outcome.error);
      REQUIRE(outcome.error->code == Code::kCancelled);
    }
    for (const auto& tensor : benches[0].tensors) REQUIRE(tensor->untouched());
    REQUIRE(all_made_or(during.wait_for(1), Code::kCancelled));
  }
}

TEST_CASE("shutdown hands every job back and takes no more", "[conformance]") {
  for (const BackendUnderTest& row : testable_backends()) {
    INFO(row.name);
    Collector collector;
    const std::unique_ptr<Backend> backend = start(row, {.lanes = 2, .fake = "delay_us=50000"});
    std::vector<JobOnTheBench> benches = small_jobs(backend->queue_depth().jobs + 1, 30, 200);
    for (std::uint32_t i = 0; i < backend->queue_depth().jobs; ++i)
      REQUIRE(backend->try_submit(benches[i].job(collector)));

    backend->shutdown();
    backend->shutdown();

    REQUIRE(collector.count() == backend->queue_depth().jobs);
    REQUIRE(all_made_or(collector.wait_for(backend->queue_depth().jobs), Code::kCancelled));
    REQUIRE_FALSE(backend->try_submit(benches.back().job(collector)));
  }
}

TEST_CASE("what a job keeps alive is let go once it is done", "[conformance]") {
  for (const BackendUnderTest& row : testable_backends()) {
    INFO(row.name);
    const std::unique_ptr<Backend> backend = start(row);
    JobOnTheBench bench = std::move(small_jobs(1, 2)[0]);
    auto segment = std::make_shared<int>(1);
    const std::weak_ptr<int> watched = segment;
    Collector collector;

    REQUIRE(backend->try_submit(bench.job(collector, std::move(segment))));

    collector.wait_for(1);
    REQUIRE(eventually([&] { return watched.expired(); }));
  }
}

TEST_CASE("a lost device gives every sample back", "[conformance]") {
  for (const BackendUnderTest& row : testable_backends()) {
    INFO(row.name);
    if (!row.can_lose) {
      skip_loudly("losing the device of backend " + std::string(row.name) + ": cannot be provoked");
      continue;
    }
    const std::unique_ptr<Backend> backend = start(row, {.fake = "lose_after=5,delay_us=20000"});
    std::vector<JobOnTheBench> benches = small_jobs(4, 4);
    Collector collector;
    HealthOnTheBench health;
    backend->listen(health.listener());
    for (std::size_t i = 0; i < 3; ++i) {
      DecodeJob job = benches[i].job(collector);
      job.done = [&, keep = std::move(job.done)](std::vector<SampleTask> tasks, std::vector<SampleOutcome> outcomes) {
        const auto is_lost = [](const SampleOutcome& outcome) { return outcome.error.has_value(); };
        if (std::ranges::any_of(outcomes, is_lost))
          health.note_given_back();  // one made before the loss may come first
        keep(std::move(tasks), std::move(outcomes));
      };
      REQUIRE(backend->try_submit(std::move(job)));
    }

    const std::vector<Finished> finished = collector.wait_for(3);

    REQUIRE(all_made_or(finished, Code::kUnavailable));
    for (const Finished& job : finished) REQUIRE(job.tasks.size() == 4);
    REQUIRE(backend->try_submit(benches[3].job(collector)));
    const Finished after_loss = collector.wait_for_one();
    for (const SampleOutcome& outcome : after_loss.outcomes) REQUIRE(outcome.error->code == Code::kUnavailable);
    const std::vector<Health> told = health.told();
    REQUIRE(told.size() == 1);
    REQUIRE(told[0].state == Health::State::kLost);
    REQUIRE_FALSE(told[0].why.empty());
    REQUIRE(health.told_before_given_back());
  }
}

TEST_CASE("a listener to a device that is lost already is told at once", "[conformance]") {
  for (const BackendUnderTest& row : testable_backends()) {
    INFO(row.name);
    if (!row.can_lose) {
      skip_loudly("listening to a lost device of backend " + std::string(row.name) + ": it cannot be lost");
      continue;
    }
    std::vector<JobOnTheBench> jobs = small_jobs(1, 2);
    Collector collector;
    const std::unique_ptr<Backend> backend = start(row, {.fake = "lose_after=1"});
    REQUIRE(backend->try_submit(jobs[0].job(collector)));
    collector.wait_for(1);
    HealthOnTheBench health;

    backend->listen(health.listener());

    REQUIRE(health.told().size() == 1);
    REQUIRE(health.told()[0].state == Health::State::kLost);
  }
}

TEST_CASE("what keeps a backend busy makes sense", "[conformance]") {
  for (const BackendUnderTest& row : testable_backends()) {
    INFO(row.name);
    const QueueDepth queue_depth = start(row, {.lanes = 3})->queue_depth();

    REQUIRE(queue_depth.at_once >= 1);
    REQUIRE(queue_depth.jobs >= queue_depth.at_once);
    REQUIRE(queue_depth.few >= 1);
    REQUIRE(queue_depth.most >= queue_depth.few);
  }
}

TEST_CASE("what a backend cannot make it says why it cannot, and gives back if it is asked to all the same",
          "[conformance]") {
  const Recipe patches{.resize = ExactSize{{32, 32}}, .patches = Patches{{16, 16}}};
  for (const BackendUnderTest& row : testable_backends()) {
    const std::unique_ptr<Backend> backend = start(row);
    for (const ImageFormat format : all_formats()) {
      for (const Recipe& recipe : {Recipe{}, patches}) {
        INFO(row.name << ", format " << static_cast<int>(format) << (recipe.patches ? ", patches" : ""));
        JobOnTheBench bench(recipe);
        EncodedImage image = image_of(format, 40, 40);
        const SampleGeometry geometry = resized_whole(image, {32, 32});
        bench.add(std::move(image), geometry);
        Collector collector;

        REQUIRE(backend->try_submit(bench.job(collector)));

        const Finished finished = collector.wait_for_one();
        if (!is_refused(*backend, finished.tasks[0], recipe, finished.outcomes[0]))
          REQUIRE_FALSE(finished.outcomes[0].error);
        REQUIRE(bench.tensors[0]->intact());
      }
    }
  }
}

TEST_CASE("each device of a row has a name of its own, and says what it is", "[conformance]") {
  for (const BackendUnderTest& row : testable_backends()) {
    INFO(row.name);
    const auto devices = *row.create(settings_of({.lanes = 3}), {});
    std::set<std::string> names;
    for (const auto& device : devices) {
      const BackendInfo info = device->info();

      REQUIRE(is_backend_name(info.name));
      REQUIRE(names.insert(info.name).second);
      REQUIRE((info.name == row.name || info.name.starts_with(std::string(row.name) + ':')));
      REQUIRE_FALSE(info.device.empty());
      REQUIRE(info.lanes >= 1);
      REQUIRE_FALSE(info.formats.empty());
    }
  }
}

}  // namespace millrace
