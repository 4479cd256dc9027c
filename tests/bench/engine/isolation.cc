#include "tests/bench/engine/isolation.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <mutex>
#include <thread>

#include "daemon/backend/cpu/cpu_backend.h"
#include "daemon/formats/probe.h"
#include "daemon/plan/draw_geometry.h"
#include "tests/bench/engine/engine_rig.h"
#include "tests/support/host/decoder_processes.h"
#include "tests/support/pictures/test_images.h"

namespace millrace::bench {
namespace {

constexpr std::size_t kMostPhotos = 96, kJob = 16;

using File = std::vector<std::byte>;
using Encode = File (*)(const Pixels& pixels);

struct Kind {
  const char* name;
  Encode encode;
};
constexpr Kind kKinds[] = {
    {"png", [](const Pixels& pixels) { return make_png({.pixels = pixels}); }},
    {"webp", [](const Pixels& pixels) { return make_webp({.pixels = pixels}); }},
    {"progressive", [](const Pixels& pixels) { return make_jpeg({.pixels = pixels, .progressive = true}); }},
};

EncodedImage encoded(const File& file) {
  EncodedImage image{.bytes = EncodedBytes(file.size())};
  std::memcpy(image.bytes.writable().data(), file.data(), file.size());
  const Result<SourceInfo> info = probe_image(image.bytes.view(), SampleLimits{}, UseOrientation::kYes);
  if (!info) broken(info.error().message);
  image.info = *info;
  return image;
}

// Of this process and of its decoders, those that have ended included.
double processor_seconds() {
  const auto of = [](int who) {
    rusage usage{};
    getrusage(who, &usage);
    const auto seconds = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
  };
  double all = of(RUSAGE_SELF) + of(RUSAGE_CHILDREN);
  for (const pid_t decoder : decoder_processes(getpid())) {
    clockid_t clock{};
    timespec time{};
    if (clock_getcpuclockid(decoder, &clock) == 0 && clock_gettime(clock, &time) == 0)
      all += static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
  }
  return all;
}

// One pass over the files.
struct Pass {
  double seconds = 0;    // by the clock
  double processor = 0;  // seconds of processor time

  Pass& operator+=(const Pass& other) {
    seconds += other.seconds;
    processor += other.processor;
    return *this;
  }
};

// Photographs of one kind through a backend's lanes, job after job, as the pipeline gives them.
class Lanes {
 public:
  explicit Lanes(Isolation isolation) {
    const CpuSettings settings{.lanes = std::max(1U, std::thread::hardware_concurrency()), .isolation = isolation};
    Result<std::unique_ptr<Backend>> backend = CpuBackend::create(settings);
    if (!backend) broken(backend.error().message);
    backend_ = *std::move(backend);
  }

  Pass play(const std::vector<File>& files, std::uint32_t epoch) {
    std::vector<std::vector<SampleTask>> jobs = jobs_of(files, epoch);
    const double processor = processor_seconds();
    const auto begin = std::chrono::steady_clock::now();
    for (std::vector<SampleTask>& tasks : jobs) submit(std::move(tasks));
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return running_ == 0; });
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    return {took.count(), processor_seconds() - processor};
  }

 private:
  std::vector<std::vector<SampleTask>> jobs_of(const std::vector<File>& files, std::uint32_t epoch) {
    const std::size_t bytes = image_bytes(*recipe_, kOutput).count;
    tensors_.resize(files.size() * bytes);
    std::vector<std::vector<SampleTask>> jobs;
    for (std::size_t i = 0; i < files.size(); ++i) {
      if (i % kJob == 0) jobs.emplace_back();
      EncodedImage image = encoded(files[i]);
      const auto geometry = draw_geometry(*recipe_, {}, image.info, RandomKey{1, epoch, SampleId{i}}, 65'535);
      if (!geometry) broken(geometry.error().message);
      jobs.back().push_back({static_cast<std::uint32_t>(i), std::move(image), *geometry,
                             in_host_memory(MutableByteView(tensors_).subspan(i * bytes, bytes))});
    }
    return jobs;
  }

  void submit(std::vector<SampleTask> tasks) {
    DecodeJob job{.tasks = std::move(tasks), .recipe = recipe_};
    job.done = [this](std::vector<SampleTask>, std::vector<SampleOutcome> outcomes) {
      for (const SampleOutcome& outcome : outcomes) {
        if (outcome.error) broken(outcome.error->message);
      }
      const std::lock_guard lock(mutex_);
      --running_;
      changed_.notify_all();
    };
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return running_ < backend_->queue_depth().jobs; });
    ++running_;
    lock.unlock();
    if (!backend_->try_submit(std::move(job))) broken("the backend takes no job");
  }

  const std::shared_ptr<const Recipe> recipe_ = std::make_shared<const Recipe>(train_recipe());
  std::vector<std::byte> tensors_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint32_t running_ = 0;
  std::unique_ptr<Backend> backend_;
};

std::vector<std::vector<File>> files_of(const BenchOptions& options) {
  std::size_t count = 0;
  std::vector<Photo> photos = load_photos(options.data, count);
  photos.erase(photos.begin() + static_cast<std::ptrdiff_t>(std::min(photos.size(), options.quick ? 4 : kMostPhotos)),
               photos.end());
  std::vector<std::vector<File>> files(std::size(kKinds));
  for (const Photo& photo : photos) {
    if (photo.header.components != 3) continue;
    const Pixels pixels = pixels_of(photo);
    for (std::size_t kind = 0; kind < std::size(kKinds); ++kind) files[kind].push_back(kKinds[kind].encode(pixels));
  }
  return files;
}

}  // namespace

namespace {

// Rounds of one kind, or of all.
struct Rounds {
  std::vector<double> throughput, cost;  // images/s by the clock; us of processor time an image

  void add(const Pass& pass, std::size_t images) {
    throughput.push_back(static_cast<double>(images) / pass.seconds);
    cost.push_back(pass.processor * 1e6 / static_cast<double>(images));
  }
};

void add_figures(const std::string& kind, const Rounds& with, const Rounds& without, const Report& report) {
  const auto rounds = static_cast<std::uint32_t>(with.cost.size());
  report.add(compared({"isolation.cost" + kind, 0, "images/s", rounds, {}, ""}, with.throughput, "in the daemon",
                      without.throughput));
  report.add(
      compared({"isolation.cpu" + kind, 0, "us/image", rounds, {}, ""}, with.cost, "in the daemon", without.cost));
}

}  // namespace

void run_isolation(const BenchOptions& options, const Report& report) {
  const std::vector<std::vector<File>> files = files_of(options);
  Lanes in_daemon(Isolation::kNone), in_processes(Isolation::kProcess);
  constexpr std::size_t kAll = std::size(kKinds);
  Rounds with[kAll + 1], without[kAll + 1];
  for (std::uint32_t round = 0; round <= rounds_of(options); ++round) {
    Pass all_with, all_without;
    for (std::size_t kind = 0; kind < kAll; ++kind) {
      Pass isolated, plain;
      if (round % 2 == 0) plain = in_daemon.play(files[kind], round);
      isolated = in_processes.play(files[kind], round);
      if (round % 2 == 1) plain = in_daemon.play(files[kind], round);
      all_with += isolated;
      all_without += plain;
      if (round == 0) continue;  // lanes meet the sizes that there are
      with[kind].add(isolated, files[kind].size());
      without[kind].add(plain, files[kind].size());
    }
    if (round == 0) continue;
    with[kAll].add(all_with, kAll * files[0].size());
    without[kAll].add(all_without, kAll * files[0].size());
  }
  add_figures("", with[kAll], without[kAll], report);
  for (std::size_t kind = 0; kind < kAll; ++kind)
    add_figures(std::string(".") + kKinds[kind].name, with[kind], without[kind], report);
}

}  // namespace millrace::bench
