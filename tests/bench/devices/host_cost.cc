// What a device costs the host's processors: the daemon's lanes and the process that owns the device, for each image, beside
// one another. With devices that make nothing and copy nothing that is all there is but the devices' own time.
//
//   LD_LIBRARY_PATH=build/release/tests/support/cuda_driver/lib SIM_CUDA_INSTANT=1
//     build/release/bin/millrace_bench_host_cost cuda ../shared/data/photos
//   build/release/bin/millrace_bench_host_cost cpu ../shared/data/photos              (what the processor takes for them)
//   XILINX_XRT=build/release/fpga/xrt MILLRACE_CARD_COPIED=65536
//     build/release/bin/millrace_bench_host_cost fpga ../shared/data/photos
//
// The simulated driver's threads, which copy what a GPU would, are told apart by their names and left out. Beside it: the
// way of one image there and back, and how long a lost device is away.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <latch>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "daemon/backend/cpu/cpu_backend.h"
#include "daemon/backend/cuda/cuda_backend.h"
#include "daemon/backend/fpga/fpga_backend.h"
#include "tests/bench/devices/device_rig.h"
#include "tests/support/host/decoder_processes.h"
#include "tests/support/host/process.h"

namespace millrace::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kOfAJob = 64, kRounds = 7, kJobs = 32;

// A family of devices, and which threads work for it.
struct Family {
  std::string_view name;
  const char *lanes, *owner, *owners_threads;
  Result<std::vector<std::unique_ptr<Backend>>> (*make)();
};

Result<std::vector<std::unique_ptr<Backend>>> make_cuda() {
  Settings settings;
  settings.groups.of<CudaSettings>() = {.wanted = Wanted::kYes, .worker = bin_folder() + "/millrace-cuda"};
  return make_cuda_backends(settings, {});
}

Result<std::vector<std::unique_ptr<Backend>>> make_fpga() {
  Settings settings;
  settings.groups.of<FpgaSettings>() = {
      .wanted = Wanted::kYes, .images = bin_folder() + "/../fpga/answering", .worker = bin_folder() + "/millrace-fpga"};
  return make_fpga_backends(settings, {});
}

Result<std::vector<std::unique_ptr<Backend>>> make_cpu() {
  Settings settings;
  settings.groups.of<CpuSettings>().lanes = 1;
  return make_cpu_backends(settings, {});
}

// An owner of nullptr: there is none.
constexpr Family kFamilies[] = {{"cpu", "mr-lane", nullptr, nullptr, make_cpu},
                                {"cuda", "mr-gpu", "millrace-cuda", "mr-lane", make_cuda},
                                {"fpga", "mr-fpga", "millrace-fpga", "millrace-fpga", make_fpga}};

class Rig {
 public:
  Rig(const Family& family, const std::string& folder)
      : backend_(start(family)), photos_(read_photos(folder, *backend_, *recipe_)) {
    for (std::size_t i = 0; i < kJobs; ++i) memory_.emplace_back(kOfAJob * tensor_.count);
  }

  // All of a round's jobs; its images.
  std::size_t run(std::size_t jobs, std::size_t of_a_job) {
    std::latch left(static_cast<std::ptrdiff_t>(jobs));
    for (std::size_t i = 0; i < jobs; ++i) {
      DecodeJob job = make_job(i, of_a_job);
      job.done = [&](const std::vector<SampleTask>&, const std::vector<SampleOutcome>& outcomes) {
        for (const SampleOutcome& outcome : outcomes) refused_ += outcome.error.has_value();
        left.count_down();
      };
      while (!backend_->try_submit(std::move(job))) std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    left.wait();
    return jobs * of_a_job;
  }
  std::size_t refused() const { return refused_; }
  Backend& backend() { return *backend_; }

 private:
  static std::unique_ptr<Backend> start(const Family& family) {
    auto backends = family.make();
    if (!backends) stop(backends.error().message);
    return std::move(backends->front());
  }

  DecodeJob make_job(std::size_t number, std::size_t images) {
    DecodeJob job{.recipe = recipe_};
    for (std::size_t i = 0; i < images; ++i) {
      const std::size_t photo = (number * images + i) % photos_.files.size();
      const Size stored = photos_.infos[photo].stored;
      EncodedImage image = image_in(photos_.files[photo]);
      image.info = photos_.infos[photo];
      job.tasks.push_back(
          {.index = static_cast<std::uint32_t>(i),
           .image = std::move(image),
           .geometry = crop_of(stored, turn_++),
           .out = in_host_memory(MutableByteView(memory_[number]).subspan(i * tensor_.count, tensor_.count))});
    }
    return job;
  }

  const std::shared_ptr<const Recipe> recipe_ = std::make_shared<const Recipe>(Recipe{.dtype = DType::kFloat16});
  const Bytes tensor_ = image_bytes(*recipe_, kOutput);
  std::unique_ptr<Backend> backend_;
  Photos photos_;
  std::vector<std::vector<std::byte>> memory_;
  std::atomic<std::size_t> refused_ = 0;
  int turn_ = 0;
};

struct Cost {
  double daemon = 0, worker = 0;  // us an image
};

Cost cost_of_a_round(Rig& rig, const Family& family, pid_t worker) {
  const double lanes = cpu_seconds(getpid(), family.lanes),
               theirs = worker == 0 ? 0 : cpu_seconds(worker, family.owners_threads);
  std::size_t images = 0;
  for (int i = 0; i < 8; ++i) images += rig.run(kJobs, kOfAJob);
  const double us = 1e6 / static_cast<double>(images);
  return {(cpu_seconds(getpid(), family.lanes) - lanes) * us,
          worker == 0 ? 0 : (cpu_seconds(worker, family.owners_threads) - theirs) * us};
}

double away_ms(Rig& rig, pid_t worker) {
  std::latch ready(1);
  rig.backend().listen([&](const Health& health) {
    if (health.state == Health::State::kReady) ready.count_down();
  });
  const Clock::time_point begun = Clock::now();
  ::kill(worker, SIGKILL);
  rig.run(2, 1);
  ready.wait();
  rig.backend().listen(nullptr);
  return std::chrono::duration<double, std::milli>(Clock::now() - begun).count();
}

// Of jobs of so many images, one after the other.
double trip_us(Rig& rig, std::size_t images) {
  std::vector<double> trips;
  for (std::size_t i = 0; i < 200; ++i) {
    const Clock::time_point begun = Clock::now();
    rig.run(1, images);
    trips.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begun).count());
  }
  return median(trips);
}

int run(const Family& family, const std::string& folder) {
  Rig rig(family, folder);
  const pid_t worker = family.owner == nullptr ? 0 : child_processes(getpid(), family.owner).at(0);
  const char* const name = family.name.data();
  std::vector<double> daemon, owner;
  rig.run(kJobs, kOfAJob);
  for (std::size_t i = 0; i < kRounds; ++i) {
    const Cost cost = cost_of_a_round(rig, family, worker);
    daemon.push_back(cost.daemon);
    owner.push_back(cost.worker);
  }
  if (worker == 0) {
    std::printf("%s %.1f us an image\n", name, median(daemon));
    return 0;
  }
  std::printf("%s.host.daemon %.1f us an image\n%s.host.owner  %.1f us an image\n", name, median(daemon), name,
              median(owner));
  std::printf("%s.host.trip   %.0f us, one image alone\n", name, trip_us(rig, 1));
  std::printf("%s.host.away   %.0f ms\n", name, away_ms(rig, worker));
  std::printf("given back: %zu images\n", rig.refused());
  return 0;
}

}  // namespace
}  // namespace millrace::bench

int main(int argc, char** argv) {
  using namespace millrace::bench;
  for (const Family& family : kFamilies) {
    if (argc == 3 && family.name == argv[1]) return run(family, argv[2]);
  }
  std::fprintf(stderr, "usage: millrace_bench_host_cost cpu|cuda|fpga FOLDER of JPEG files\n");
  return 2;
}
