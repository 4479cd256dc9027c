// A lane of the CUDA backend with two batches under way, on the simulated driver: one waits for the GPU while the other is
// made, one has all of the lane where its half will not do, and what fails is said of each sample once.
#include <algorithm>
#include <atomic>
#include <csignal>
#include <deque>
#include <optional>
#include <thread>

#include "daemon/backend/cuda/staging_turns.h"
#include "tests/support/host/eventually.h"
#include "tests/support/skip.h"
#include "tests/unit/daemon/backend/cuda/cuda_rig.h"

namespace millrace {
namespace {

// A job that is in the backend beside others.
struct JobInIt {
  JobInIt(Backend& backend, const Images& images, const Stored& stored)
      : bench({.layout = stored.layout, .channels = stored.channels}) {
    for (const auto& bytes : images) {
      const Result<SourceInfo> info = probe_image(bytes, SampleLimits{}, UseOrientation::kYes);
      REQUIRE(info);
      EncodedImage image = encoded(bytes, info->format, info->stored);
      const SampleGeometry geometry = resized_whole(image, stored.size);
      bench.add(std::move(image), geometry);
    }
    REQUIRE(backend.try_submit(bench.job(collector)));
  }

  bool has_come() const { return collector.count() == 1; }
  // Each sample has come back once.
  Came wait() {
    const Finished finished = collector.wait_for_one();
    REQUIRE(finished.outcomes.size() == bench.tensors.size());
    Came came;
    for (std::size_t i = 0; i < finished.outcomes.size(); ++i) {
      REQUIRE(finished.outcomes[i].index == finished.tasks[i].index);
      const auto& error = finished.outcomes[i].error;
      if (error) came.codes.push_back(error->code);
      came.tensors.push_back(error ? std::vector<std::byte>() : bench.tensors[i]->copy());
    }
    return came;
  }

  JobOnTheBench bench;
  Collector collector;
};

bool are_all(const std::vector<Code>& codes, Code code, std::size_t count) {
  return codes == std::vector(count, code);
}

}  // namespace

TEST_CASE("a batch is made while another one of its lane is on the GPU", "[cuda][pair]") {
  if (skips_without_gpu_kernels()) return;
  CudaSettings settings = small_settings();
  settings.hang = std::chrono::minutes(5);
  std::optional<Driver> driver(Variables{{"SIM_CUDA_FAULTS", "launch:millrace_tokenise:1=hang"}});
  const std::unique_ptr<Backend> gpu = start_gpu(settings);
  driver.reset();  // the process after it does not hang
  const Images files = jpegs(6, 1);
  const Came expected = on_the_processor(files, kB);
  JobInIt one(*gpu, files, kB), other(*gpu, files, kB);

  REQUIRE(eventually([&] { return one.has_come() || other.has_come(); }));

  JobInIt& made = one.has_come() ? one : other;
  JobInIt& hanging = one.has_come() ? other : one;
  REQUIRE(count_right(made.wait(), expected) == files.size());
  REQUIRE(count_right(make(*gpu, files, kB), expected) == files.size());  // and another one
  REQUIRE_FALSE(hanging.has_come());
  HealthOnTheBench health;
  gpu->listen(health.listener());
  ::kill(gpu_process(), SIGKILL);
  REQUIRE(are_all(hanging.wait().codes, Code::kUnavailable, files.size()));
  REQUIRE(eventually([&] { return health.told().size() == 2; }));
  REQUIRE(count_right(make(*gpu, files, kB), expected) == files.size());
  gpu->shutdown();
}

TEST_CASE("a GPU that is lost while a lane has two batches there gives each sample back once", "[cuda][pair]") {
  if (skips_without_gpu_kernels()) return;
  const std::string faults = GENERATE("launch:millrace_tokenise:1=hang;launch:millrace_tokenise:2=hang",
                                      "launch:millrace_tokenise:1=hang;launch:millrace_reconstruct:2=700",
                                      "launch:millrace_reconstruct:2=700", "copy:DtoH:2=214");
  CAPTURE(faults);
  CudaSettings settings = small_settings();
  settings.hang = std::chrono::seconds(5);
  std::optional<Driver> driver(Variables{{"SIM_CUDA_FAULTS", faults}});
  const std::unique_ptr<Backend> gpu = start_gpu(settings);
  driver.reset();
  HealthOnTheBench health;
  gpu->listen(health.listener());
  const Images files = jpegs(6, 1);
  const Came expected = on_the_processor(files, kB);
  std::deque<JobInIt> jobs;
  for (int i = 0; i < 3; ++i) jobs.emplace_back(*gpu, files, kB);

  for (JobInIt& job : jobs) {
    const Came came = job.wait();
    REQUIRE(are_all(came.codes, Code::kUnavailable, files.size() - count_right(came, expected)));
  }

  REQUIRE(eventually([&] { return health.told().size() == 2; }));  // lost once
  REQUIRE(count_right(make(*gpu, files, kB), expected) == files.size());
  gpu->shutdown();
}

TEST_CASE("one of two batches that finds no memory is made with less, and the other one is left alone",
          "[cuda][pair]") {
  if (skips_without_gpu_kernels()) return;
  const Driver driver(Variables{{"SIM_CUDA_FAULTS", "launch:millrace_tokenise:2=2;copy:HtoD:5=2"}});
  const std::unique_ptr<Backend> gpu = start_gpu();
  HealthOnTheBench health;
  gpu->listen(health.listener());
  const Images files = jpegs(16, 1), more = jpegs(16, 50);
  const Came expected = on_the_processor(files, kB), expected_more = on_the_processor(more, kA);

  for (int round = 0; round < 3; ++round) {
    JobInIt one(*gpu, files, kB), other(*gpu, more, kA);
    REQUIRE(count_right(one.wait(), expected) == files.size());
    REQUIRE(count_right(other.wait(), expected_more) == more.size());
  }

  REQUIRE(health.told().empty());
  gpu->shutdown();
}

TEST_CASE("what is too large for half a lane is made by all of it, between batches of both halves", "[cuda][pair]") {
  if (skips_without_gpu_kernels()) return;
  CudaSettings settings = small_settings();
  const Images files = jpegs(6, 1);
  Images large = jpegs(1, 7);
  Stored output = kB;
  SECTION("the tensor is, for the staging") {
    settings.staging = 4_MiB;
    output.size = {900, 800};  // of 2.2 MB, and half of it has 1.6
  }
  SECTION("the file is, for the staging") {
    settings.staging = 4_MiB;
    large = {make_jpeg({.pixels = make_pixels(900, 800, 3, 3), .quality = 100})};
    REQUIRE(large[0].size() > (512 << 10));
    REQUIRE(large[0].size() < (1 << 20));
  }
  SECTION("what it takes is, for the GPU's memory") {
    settings.memory = 18_MiB;  // of which tables take 10
    large = jpegs(1, 7, 1'300);
  }
  const Came expected = on_the_processor(files, kB), expected_large = on_the_processor(large, output);
  const std::unique_ptr<Backend> gpu = start_gpu(settings);

  for (int round = 0; round < 2; ++round) {
    JobInIt one(*gpu, files, kB), alone(*gpu, large, output), other(*gpu, files, kB);
    REQUIRE(count_right(one.wait(), expected) == files.size());
    REQUIRE(count_right(alone.wait(), expected_large) == 1);
    REQUIRE(count_right(other.wait(), expected) == files.size());
  }

  gpu->shutdown();
}

TEST_CASE("jobs are as large as the GPU wants them, and as half a lane has room for", "[cuda][pair]") {
  CudaSettings settings{.lanes = 2, .staging = 192_MiB};
  const auto most = [&](int multiprocessors) {
    Gpu gpu;
    gpu.multiprocessors = multiprocessors;
    return cuda_queue_depth(gpu, settings).most;
  };
  CHECK(most(0) == 64);  // CUDA has not said it yet
  CHECK(most(20) == 64);
  CHECK(most(132) == 96);
  settings.staging = 16_MiB;
  CHECK(most(132) == 64);
  settings.staging = 384_MiB;
  CHECK(most(132) == 192);
  CHECK(most(80) == 112);
  CHECK(cuda_queue_depth({}, settings).jobs == 8);
}

TEST_CASE("turns at a staging are in the order in which they are asked for", "[cuda][pair]") {
  StagingTurns turns;
  std::vector<int> order;
  std::vector<std::thread> threads;
  const auto queue = [&](int number, bool whole) {
    threads.emplace_back([&, number, whole] {
      const StagingTurns::Turn turn(turns, whole);
      order.push_back(number);  // no two at once: a half is between two wholes
    });
    REQUIRE(eventually([&] { return turns.waiting() == threads.size(); }));
  };
  {
    const StagingTurns::Turn first(turns, true);
    for (int number = 0; number < 6; ++number) queue(number, number % 2 != 0);
  }

  for (std::thread& thread : threads) thread.join();

  REQUIRE(order == std::vector{0, 1, 2, 3, 4, 5});
}

TEST_CASE("who has a whole staging has it alone", "[cuda][pair]") {
  StagingTurns turns;
  std::atomic<int> halves = 0, wholes = 0, wrong = 0;
  const auto take = [&](bool whole) {
    const StagingTurns::Turn turn(turns, whole);
    std::atomic<int>& mine = whole ? wholes : halves;
    ++mine;
    if (wholes > 1 || (wholes > 0 && halves > 0)) ++wrong;
    --mine;
  };
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 2; ++thread)
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 20'000; ++i) take((i + thread) % 7 == 0);
    });

  for (std::thread& thread : threads) thread.join();

  REQUIRE(wrong == 0);
}

}  // namespace millrace
