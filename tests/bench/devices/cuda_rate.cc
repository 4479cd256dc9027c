// Images/s of whole jobs through a CUDA backend whose GPU takes as long as a large one is estimated to, tensors in the
// GPU's memory, and what that costs the host's processors. Nothing of it has run on a GPU: figures are simulated.
//
//   LD_LIBRARY_PATH=build/release/tests/support/cuda_driver/lib
//     build/release/bin/millrace_bench_cuda_rate ../shared/data/photos [IMAGES a job [TIMES as long]]
//
// The simulated driver's kernels and copies keep their engines for their time, and leave the processor alone. What
// SIM_CUDA_... says in the environment goes before what is said here. Files are in memory before it begins, as the
// daemon's readers would have them.
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/backend/cuda/cuda_backend.h"
#include "daemon/memory/arena.h"
#include "tests/bench/devices/device_rig.h"
#include "tests/support/host/decoder_processes.h"
#include "tests/support/host/process.h"

namespace millrace::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kRounds = 5;
constexpr std::size_t kOfTheUsualMemory = 96;  // images of a job at most; larger ones have twice as much
constexpr double kRoundSeconds = 2;

// A batch of 64 to 192 on a GPU of 132 multiprocessors, PCIe 5 at half its rate, both ways.
std::string durations(double times) {
  const auto us = [&](const char* name, double is, double bytes) {
    return std::string(name) + "=" + std::to_string(is * times) +
           (bytes == 0 ? "" : "/" + std::to_string(bytes / times)) + ";";
  };
  return us("HtoD", 3, 25'000) + us("DtoH", 3, 25'000) + us("DtoD", 3, 1'000'000) + us("memset", 2, 0) +
         us("millrace_tokenise", 800, 0) + us("millrace_unpack", 200, 0) + us("millrace_reconstruct", 200, 0);
}

void say_to_driver(const char* name, const std::string& value) {
  ::setenv(name, value.c_str(), 0);
}

// With memory for jobs of so many images.
std::unique_ptr<Backend> start_gpu(std::size_t images) {
  Settings settings;
  CudaSettings& cuda = settings.groups.of<CudaSettings>();
  cuda = {.wanted = Wanted::kYes, .worker = bin_folder() + "/millrace-cuda"};
  if (images > kOfTheUsualMemory) {
    cuda.memory = cuda.memory * 2;
    cuda.staging = cuda.staging * 2;
  }
  auto backends = make_cuda_backends(settings, {});
  if (!backends) stop(backends.error().message);
  return std::move(backends->front());
}

// Jobs' tasks, which go round. Thread-safe.
class Round {
 public:
  using Tasks = std::vector<SampleTask>;

  void put(Tasks tasks) {
    {
      const std::scoped_lock lock(mutex_);
      ready_.push_back(std::move(tasks));
    }
    changed_.notify_one();
  }
  Tasks take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !ready_.empty(); });
    Tasks tasks = std::move(ready_.front());
    ready_.pop_front();
    return tasks;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Tasks> ready_;
};

struct Rates {
  double images_a_second = 0, daemon_us = 0, owner_us = 0;
};

class CudaRateRig {
 public:
  CudaRateRig(const std::string& folder, std::size_t images)
      : backend_(start_gpu(images)),
        images_(images),
        slots_(backend_->queue_depth().jobs + 2),
        photos_(read_photos(folder, *backend_, *recipe_)),
        worker_(child_processes(getpid(), "millrace-cuda").at(0)) {
    make_arena();
    for (std::uint32_t slot = 0; slot < slots_; ++slot) round_.put(make_tasks(slot));
  }

  Rates run(double seconds) {
    const double lanes = cpu_seconds(getpid(), "mr-gpu"), theirs = cpu_seconds(worker_, "mr-lane");
    const Clock::time_point begun = Clock::now();
    std::size_t jobs = 0;
    const auto lasted = [&] { return std::chrono::duration<double>(Clock::now() - begun).count(); };
    for (; lasted() < seconds; ++jobs) submit(round_.take());
    std::vector<Round::Tasks> back;
    for (std::uint32_t slot = 0; slot < slots_; ++slot) back.push_back(round_.take());
    const auto made = static_cast<double>(jobs * images_);
    const Rates rates{made / lasted(), 1e6 * (cpu_seconds(getpid(), "mr-gpu") - lanes) / made,
                      1e6 * (cpu_seconds(worker_, "mr-lane") - theirs) / made};
    for (Round::Tasks& tasks : back) round_.put(std::move(tasks));
    return rates;
  }
  std::size_t refused() const { return refused_; }

 private:
  void make_arena() {
    TensorMemory* const memory = backend_->memory();
    if (memory == nullptr) stop("the GPU's memory is nobody's");
    std::optional<Result<MadeArena>> made;
    memory->make(control_, {.slots = slots_, .slot_bytes = tensor_ * images_, .most_samples = 1}, nullptr,
                 [&](Result<MadeArena> arena) { made = std::move(arena); });
    while (!made) {
      control_.run_for(std::chrono::milliseconds(10));
      control_.restart();
    }
    if (!*made) stop(made->error().message);
    arena_ = **std::move(made);
  }

  Round::Tasks make_tasks(std::uint32_t slot) {
    Round::Tasks tasks;
    for (std::size_t i = 0; i < images_; ++i) {
      const std::size_t photo = turn_++ % photos_.files.size();
      EncodedImage image = image_in(photos_.files[photo]);
      image.info = photos_.infos[photo];
      tasks.push_back({.index = static_cast<std::uint32_t>(i),
                       .image = std::move(image),
                       .geometry = {},
                       .out = arena_.arena->destination(SlotIndex{slot}, {i * tensor_.count, tensor_})});
    }
    return tasks;
  }

  void submit(Round::Tasks tasks) {
    DecodeJob job{.tasks = std::move(tasks), .recipe = recipe_};
    for (SampleTask& task : job.tasks) task.geometry = crop_of(task.image.info.stored, static_cast<int>(turn_++));
    job.done = [this](Round::Tasks back, const std::vector<SampleOutcome>& outcomes) {
      for (const SampleOutcome& outcome : outcomes) refused_ += outcome.error.has_value() ? 1 : 0;
      round_.put(std::move(back));
    };
    while (!backend_->try_submit(std::move(job))) std::this_thread::sleep_for(std::chrono::microseconds(20));
  }

  const std::shared_ptr<const Recipe> recipe_ = std::make_shared<const Recipe>(Recipe{.dtype = DType::kFloat16});
  const Bytes tensor_ = image_bytes(*recipe_, kOutput);
  boost::asio::io_context control_;
  Round round_;
  std::atomic<std::size_t> refused_ = 0;
  std::unique_ptr<Backend> backend_;
  const std::size_t images_;
  const std::uint32_t slots_;
  const Photos photos_;
  const pid_t worker_;
  MadeArena arena_;
  std::size_t turn_ = 0;
};

int run(const std::string& folder, std::size_t images, double times) {
  say_to_driver("SIM_CUDA_INSTANT", "1");
  say_to_driver("SIM_CUDA_SCRAMBLE", "0");
  say_to_driver("SIM_CUDA_COPIED", "65536");
  say_to_driver("SIM_CUDA_MULTIPROCESSORS", "132");
  say_to_driver("SIM_CUDA_KERNELS_AT_ONCE", "4");  // four batches are a fifth of the thread blocks that it has room for
  say_to_driver("SIM_CUDA_DURATIONS", durations(times));
  CudaRateRig rig(folder, images);
  rig.run(kRoundSeconds / 4);
  std::vector<double> rates, daemon, owner;
  for (std::size_t i = 0; i < kRounds; ++i) {
    const Rates round = rig.run(kRoundSeconds);
    rates.push_back(round.images_a_second);
    daemon.push_back(round.daemon_us);
    owner.push_back(round.owner_us);
  }
  std::printf("cuda.rate        %.0f images/s (simulated), %zu a job\n", median(rates), images);
  std::printf("cuda.rate.daemon %.1f us an image\ncuda.rate.owner  %.1f us an image\n", median(daemon), median(owner));
  std::printf("given back: %zu images\n", rig.refused());
  return 0;
}

}  // namespace
}  // namespace millrace::bench

int main(int argc, char** argv) {
  if (argc >= 2 && argc <= 4)
    return millrace::bench::run(argv[1], argc < 3 ? 64 : std::strtoul(argv[2], nullptr, 10),
                                argc < 4 ? 1 : std::strtod(argv[3], nullptr));
  std::fprintf(stderr, "usage: millrace_bench_cuda_rate FOLDER of JPEG files [IMAGES a job [TIMES as long]]\n");
  return 2;
}
