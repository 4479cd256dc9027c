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

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <latch>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "daemon/backend/cpu/cpu_backend.h"
#include "daemon/backend/cuda/cuda_backend.h"
#include "daemon/backend/fpga/fpga_backend.h"
#include "daemon/formats/probe.h"
#include "tests/support/host/decoder_processes.h"
#include "tests/support/host/process.h"
#include "tests/support/pictures/image_folder.h"

namespace millrace::bench {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kOfAJob = 64, kRounds = 7, kJobs = 32;
constexpr Size kOutput{224, 224};

[[noreturn]] void stop(const std::string& why) {
  std::fprintf(stderr, "millrace_bench_host_cost: %s\n", why.c_str());
  std::exit(1);
}

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

// Of the threads of a process whose names begin so: user and system time.
double cpu_seconds(pid_t process, const std::string& names) {
  double ticks = 0;
  for (const auto& task : fs::directory_iterator("/proc/" + std::to_string(process) + "/task")) {
    std::ifstream stat(task.path() / "stat");
    std::string line;
    std::getline(stat, line);
    const std::size_t open = line.find('('), close = line.rfind(')');
    if (close == std::string::npos || line.compare(open + 1, names.size(), names) != 0) continue;
    std::istringstream rest(line.substr(close + 2));
    std::string skipped;
    for (int i = 0; i < 11; ++i) rest >> skipped;
    double user = 0, system = 0;
    rest >> user >> system;
    ticks += user + system;
  }
  return ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

EncodedImage image_in(const std::vector<std::byte>& bytes) {
  EncodedImage image{.bytes = EncodedBytes(bytes.size())};
  std::copy(bytes.begin(), bytes.end(), image.bytes.writable().begin());
  return image;
}

struct Photos {
  std::vector<std::vector<std::byte>> files;
  std::vector<SourceInfo> infos;
};

Photos read_photos(const std::string& folder, const Backend& backend, const Recipe& recipe) {
  Photos photos;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::vector<std::byte> bytes = read_file(entry.path());
    const Result<SourceInfo> info = probe_image(bytes, SampleLimits{}, UseOrientation::kYes);
    const SampleGeometry geometry{{0, 0, 1, 1}, kOutput, {0, 0, 224, 224}};
    if (!info || !backend.can_make({*info, geometry}, recipe)) continue;
    photos.files.push_back(std::move(bytes));
    photos.infos.push_back(*info);
  }
  if (photos.files.empty()) stop(folder + " has no baseline JPEG file");
  return photos;
}

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
      const int width = static_cast<int>(stored.width), height = static_cast<int>(stored.height);
      const int half = (width + 1) / 2 - turn_++ % (width / 4 + 1);  // another width each time, as random crops have
      job.tasks.push_back(
          {.index = static_cast<std::uint32_t>(i),
           .image = std::move(image),
           .geometry = {{width / 4, height / 4, half, (height + 1) / 2}, kOutput, {0, 0, 224, 224}},
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

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

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
