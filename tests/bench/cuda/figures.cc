#include "tests/bench/cuda/figures.h"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>

#include "tests/bench/cuda/batch_runner.h"
#include "tests/bench/cuda/train_requests.h"

namespace millrace::kernels::cuda::bench {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double cpu_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

double copy_rate(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  Stream stream;
  Event begin, end;
  constexpr int kCopies = 10;
  for (int i = -1; i < kCopies; ++i) {
    if (i == 0) begin.record(stream);
    MILLRACE_REQUIRE_CUDA(cudaMemcpyAsync(to, from, bytes, kind, stream.get()));
  }
  end.record(stream);
  end.wait();
  return kCopies * static_cast<double>(bytes) / end.seconds_since(begin);
}

// Of all workers.
struct Counts {
  std::atomic<std::size_t> next{0}, images{0}, not_done{0};
  std::atomic<bool> counting{false}, stop{false};
};

std::size_t not_done(const BatchRunner& runner, std::size_t requests) {
  const auto statuses = runner.statuses();
  return requests - static_cast<std::size_t>(std::count(statuses.begin(), statuses.end(), Status::kDone));
}

BatchRecipe recipe_of(const TrainCase& what) {
  BatchRecipe recipe = kTrain.recipe;
  recipe.fidelity = what.fidelity;
  return recipe;
}

PlannerSettings planning_of(const BenchSettings& settings) {
  return {.wanted_tiles = settings.tiles};
}

// One of the host's threads: plans a batch while its others are on the GPU.
void work(const ImagePool& pool, const Kernels& kernels, const BenchSettings& settings, const TrainCase& what,
          std::uint32_t seed, Counts& counts) {
  TrainRequests requests(pool, settings.batch, what.start, seed);
  std::vector<std::unique_ptr<BatchRunner>> runners;
  for (int i = 0; i < settings.runners; ++i)
    runners.push_back(std::make_unique<BatchRunner>(recipe_of(what), kernels, planning_of(settings)));
  std::vector<bool> used(runners.size());
  for (std::size_t turn = 0; !counts.stop; turn = (turn + 1) % runners.size()) {
    BatchRunner& runner = *runners[turn];
    runner.wait();
    if (used[turn] && counts.counting) {
      counts.images += settings.batch;
      counts.not_done += not_done(runner, settings.batch);
    }
    const auto drawn = requests.draw(counts.next++);
    runner.submit(drawn, requests.encoded());
    used[turn] = true;
  }
  for (const auto& runner : runners) runner->wait();
}

}  // namespace

void print_figure(const char* name, double value, const char* unit, const char* conditions) {
  std::printf("%-42s %14.4g  %-12s %s\n", name, value, unit, conditions);
  std::fflush(stdout);
}

Limits measure_limits() {
  constexpr std::size_t kBytes = std::size_t{512} << 20;
  PinnedMemory pinned(kBytes);
  GpuMemory from(kBytes), to(kBytes);
  std::fill_n(pinned.data(), kBytes, std::byte{0x5A});
  Limits limits;
  limits.to_gpu = copy_rate(from.data(), pinned.data(), kBytes, cudaMemcpyHostToDevice);
  limits.on_gpu = 2 * copy_rate(to.data(), from.data(), kBytes, cudaMemcpyDeviceToDevice);
  print_figure("limits.pcie", limits.to_gpu / 1e9, "GB/s", "512 MiB from pinned memory");
  print_figure("limits.hbm", limits.on_gpu / 1e9, "GB/s", "512 MiB on the GPU, read and written");
  return limits;
}

double train_figure(const ImagePool& pool, const Kernels& kernels, const BenchSettings& settings,
                    const TrainCase& what) {
  Counts counts;
  std::vector<std::jthread> workers;
  for (int i = 0; i < settings.threads; ++i)
    workers.emplace_back([&, i] { work(pool, kernels, settings, what, static_cast<std::uint32_t>(i), counts); });
  std::this_thread::sleep_for(std::chrono::duration<double>(std::max(1.0, settings.seconds / 4)));  // warm
  const auto begin = Clock::now();
  const double cpu = cpu_seconds();
  counts.counting = true;
  std::this_thread::sleep_for(std::chrono::duration<double>(settings.seconds));
  counts.counting = false;
  const double seconds = seconds_since(begin), cores = (cpu_seconds() - cpu) / seconds;
  counts.stop = true;
  workers.clear();
  const double rate = static_cast<double>(counts.images) / seconds;
  const std::string name = std::string("cuda.train.") + what.name;
  print_figure(name.c_str(), rate, "images/s", "RandomResizedCrop 224, float16 NCHW, copies included");
  print_figure((name + ".cpu_cores").c_str(), cores, "cores");
  print_figure((name + ".not_done").c_str(),
               static_cast<double>(counts.not_done) / std::max<double>(1, static_cast<double>(counts.images)),
               "of images", "left to the CPU");
  return rate;
}

void profile_figures(const ImagePool& pool, const Kernels& kernels, const BenchSettings& settings, const Limits& limits,
                     const TrainCase& what) {
  // As many images as several batches in flight have: one alone would leave multiprocessors idle.
  const std::size_t batch = std::min(4 * settings.batch, pool.size());
  TrainRequests requests(pool, batch, what.start, 1);
  BatchRunner runner(recipe_of(what), kernels, planning_of(settings));
  constexpr int kBatches = 12;
  BatchTimes sum;
  double bytes = 0, uploaded = 0, moved = 0, planning = 0;
  for (int i = -4; i < kBatches; ++i) {
    const auto drawn = requests.draw(static_cast<std::size_t>(i + 4));
    const auto begin = Clock::now();
    const BatchPlan& plan = runner.submit(drawn, requests.encoded(), BatchRunner::Timed::kYes);
    const double planned = seconds_since(begin);
    runner.wait();
    if (i < 0) continue;
    const BatchTimes times = runner.times();
    planning += planned;
    sum.encoded += times.encoded;
    sum.upload += times.upload;
    sum.tokenise += times.tokenise;
    sum.reconstruct += times.reconstruct;
    sum.download += times.download;
    const auto tokens = static_cast<double>(runner.tokens_made());
    bytes += static_cast<double>(requests.encoded().size());
    uploaded += static_cast<double>(runner.upload_bytes());
    // Scans, tokens and entries are read once and the latter two written once, tensors written.
    moved += static_cast<double>(requests.encoded().size()) + 2 * sizeof(Token) * tokens +
             2 * sizeof(BlockEntry) * static_cast<double>(plan.blocks) +
             static_cast<double>(plan.tensor_bytes * drawn.size());
  }
  const double images = kBatches * static_cast<double>(batch), kernel_time = sum.tokenise + sum.reconstruct;
  const std::string name = std::string("cuda.profile.") + what.name;
  const auto each = [&](const char* part, double seconds) {
    print_figure((name + part).c_str(), 1e6 * seconds / images, "us/image", "one batch at a time");
  };
  each(".copy", sum.encoded);
  each(".upload", sum.upload);
  each(".tokenise", sum.tokenise);
  each(".reconstruct", sum.reconstruct);
  each(".download", sum.download);
  each(".plan_and_launch", planning);
  print_figure((name + ".sm_time").c_str(), 1e6 * kernel_time * kernels.shape().multiprocessors / images,
               "SM-us/image");
  print_figure((name + ".pcie_share").c_str(), (bytes + uploaded) / (sum.encoded + sum.upload) / limits.to_gpu,
               "of limit", "while copying");
  print_figure((name + ".hbm_share").c_str(), moved / kernel_time / limits.on_gpu, "of limit",
               "what has to be moved, over the kernels' time");
}

}  // namespace millrace::kernels::cuda::bench
