#include "tests/conformance/bench_of_backend.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "daemon/backend/cpu/cpu_settings.h"
#include "daemon/backend/cuda/cuda_settings.h"
#include "daemon/backend/fake/fake_settings.h"
#include "daemon/backend/fpga/fpga_settings.h"
#include "daemon/formats/format_table.h"
#include "daemon/formats/probe.h"
#include "tests/support/host/process.h"
#include "tests/support/jpeg/mrp_file.h"
#include "tests/support/pictures/heic_files.h"
#include "tests/support/pictures/test_images.h"
#include "tests/support/skip.h"

namespace millrace {

std::vector<BackendUnderTest> testable_backends() {
  std::vector<BackendUnderTest> all = backends_under_test();
  all.push_back(isolated_cpu());
  std::vector<BackendUnderTest> rows;
  for (const BackendUnderTest& row : all) {
    const auto devices = row.create(settings_of({.lanes = 1}), {});
    REQUIRE(devices);
    if (!devices->empty())
      rows.push_back(row);
    else
      skip_loudly("backend " + std::string(row.name) + ": this host has no such device");
  }
  REQUIRE_FALSE(rows.empty());
  return rows;
}

Settings settings_of(const BenchSettings& bench) {
  Settings settings;
  settings.groups.of<CpuSettings>().lanes = bench.lanes;
  settings.groups.of<FakeSettings>().options = bench.fake;
  const std::chrono::seconds hang(50);  // simulated devices are slow on a busy machine, under a sanitizer above all
  settings.groups.of<CudaSettings>() = {.wanted = Wanted::kAuto,
                                        .memory = 256_MiB,
                                        .staging = 64_MiB,
                                        .hang = hang,
                                        .worker = bin_folder() + "/millrace-cuda"};
  settings.groups.of<FpgaSettings>() = {.wanted = Wanted::kAuto,
                                        .staging = 64_MiB,
                                        .hang = hang,
                                        .images = bin_folder() + "/../fpga",
                                        .worker = bin_folder() + "/millrace-fpga"};
  return settings;
}

std::unique_ptr<Backend> start(const BackendRow& row, const BenchSettings& bench) {
  auto devices = row.create(settings_of(bench), {.limits = Limits{.sample = bench.limits}});
  REQUIRE(devices);
  REQUIRE_FALSE(devices->empty());
  return std::move(devices->front());
}

std::function<void(std::vector<SampleTask>, std::vector<SampleOutcome>)> Collector::done() {
  return [this](std::vector<SampleTask> tasks, std::vector<SampleOutcome> outcomes) {
    MutexLock lock(mutex_);
    finished_.push_back({std::move(tasks), std::move(outcomes)});
    changed_.notify_all();
  };
}

std::size_t Collector::count() const {
  MutexLock lock(mutex_);
  return finished_.size();
}

std::vector<Finished> Collector::wait_for(std::size_t count) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  MutexLock lock(mutex_);
  while (finished_.size() < count) {
    if (!changed_.wait_until(mutex_, deadline)) break;
  }
  REQUIRE(finished_.size() == count);
  return std::exchange(finished_, {});
}

bool is_refused(const Backend& backend, const SampleTask& task, const Recipe& recipe, const SampleOutcome& outcome) {
  const Result<void> can =
      backend.can_make({task.image.info, task.geometry, Fidelity::kExact, kind_kept(task.image)}, recipe);
  if (can) return false;
  REQUIRE(can.error().code == Code::kUnsupported);
  REQUIRE_FALSE(can.error().message.empty());
  REQUIRE(outcome.error);
  REQUIRE(outcome.error->code == Code::kUnsupported);
  return true;
}

HealthListener HealthOnTheBench::listener() {
  return [this](const Health& health) {
    MutexLock lock(mutex_);
    told_.push_back(health);
  };
}

std::vector<Health> HealthOnTheBench::told() const {
  MutexLock lock(mutex_);
  return told_;
}

bool HealthOnTheBench::told_before_given_back() const {
  MutexLock lock(mutex_);
  return told_first_.value_or(false);
}

void HealthOnTheBench::note_given_back() {
  MutexLock lock(mutex_);
  if (!told_first_) told_first_ = !told_.empty();
}

GuardedBytes::GuardedBytes(std::size_t size) : memory_(size + 2 * kGuard, kFill) {}

bool GuardedBytes::untouched() const {
  return std::all_of(memory_.begin(), memory_.end(), [](std::byte b) { return b == kFill; });
}

bool GuardedBytes::intact() const {
  const auto filled = [](std::byte b) { return b == kFill; };
  return std::all_of(memory_.begin(), memory_.begin() + kGuard, filled) &&
         std::all_of(memory_.end() - kGuard, memory_.end(), filled);
}

EncodedImage encoded(const std::vector<std::byte>& bytes, ImageFormat format, Size stored, int orientation) {
  EncodedBytes copy(bytes.size());
  if (!bytes.empty()) std::memcpy(copy.writable().data(), bytes.data(), bytes.size());
  SourceInfo info{format, stored, static_cast<std::uint8_t>(orientation)};
  if (const Result<SourceInfo> probed = probe_image(bytes, SampleLimits{}, UseOrientation::kNo)) info.has = probed->has;
  return {std::move(copy), info};
}

EncodedImage jpeg_image(std::uint32_t width, std::uint32_t height, std::uint32_t seed) {
  return encoded(make_jpeg({.pixels = make_pixels(width, height, 3, seed)}), ImageFormat::kJpeg, {width, height});
}

std::vector<ImageFormat> all_formats() {
  std::vector<ImageFormat> all;
  for (const Format& format : kFormats) {
    if (format.format != ImageFormat::kAvif || can_make_avif()) all.push_back(format.format);
  }
  return all;
}

EncodedImage image_of(ImageFormat format, std::uint32_t width, std::uint32_t height) {
  const Pixels pixels = make_pixels(width, height, 3, 7);
  switch (format) {
    case ImageFormat::kJpeg:
      return encoded(make_jpeg({.pixels = pixels}), format, {width, height});
    case ImageFormat::kPng:
      return encoded(make_png({.pixels = pixels}), format, {width, height});
    case ImageFormat::kWebp:
      return encoded(make_webp({.pixels = pixels}), format, {width, height});
    case ImageFormat::kPacked:
      return encoded(make_mrp(make_jpeg({.pixels = pixels})), format, {width, height});
    case ImageFormat::kPnm:
      return encoded(make_pnm({.pixels = pixels}), format, {width, height});
    case ImageFormat::kBmp:
      return encoded(make_bmp({.pixels = pixels}), format, {width, height});
    case ImageFormat::kGif:
      return encoded(make_gif({.pixels = make_pixels(width, height, 1, 7)}), format, {width, height});
    case ImageFormat::kTiff:
      return encoded(make_tiff({.pixels = pixels}), format, {width, height});
    case ImageFormat::kAvif:
      return encoded(make_avif({.pixels = pixels}), format, {width, height});
    case ImageFormat::kHeic:
      return encoded(heic_file("colour"), format, {40, 30});
    case ImageFormat::kL3:
      return encoded(make_l3({.pixels = pixels}), format, {width, height});
  }
  return {};
}

SampleGeometry resized_whole(const EncodedImage& image, Size output) {
  const Size source = oriented_size(image.info);
  return {.crop = {0, 0, static_cast<std::int32_t>(source.width), static_cast<std::int32_t>(source.height)},
          .resized = output,
          .window = {0, 0, static_cast<std::int32_t>(output.width), static_cast<std::int32_t>(output.height)}};
}

void JobOnTheBench::add(EncodedImage image, const SampleGeometry& geometry) {
  SampleTask task{.index = static_cast<std::uint32_t>(tasks.size()), .image = std::move(image), .geometry = geometry};
  for (const SampleGeometry& view : views_of(geometry)) {
    tensors.push_back(std::make_unique<GuardedBytes>(image_bytes(*recipe, view.output()).count));
    const Destination out = in_host_memory(tensors.back()->view());
    &view == views_of(geometry).data() ? task.out = out : task.further_outs.emplace_back(out);
  }
  tasks.push_back(std::move(task));
}

DecodeJob JobOnTheBench::job(Collector& collector, std::shared_ptr<const void> keep_alive) {
  return {.tasks = std::move(tasks),
          .recipe = recipe,
          .stop = stop,
          .keep_alive = std::move(keep_alive),
          .done = collector.done()};
}

std::vector<JobOnTheBench> small_jobs(std::size_t jobs, std::uint32_t samples, std::uint32_t side) {
  std::vector<JobOnTheBench> made;
  const std::vector<std::byte> bytes = make_jpeg({.pixels = make_pixels(side, side, 3, 7)});
  for (std::size_t i = 0; i < jobs; ++i) {
    JobOnTheBench& job = made.emplace_back();
    for (std::uint32_t s = 0; s < samples; ++s) {
      EncodedImage image = encoded(bytes, ImageFormat::kJpeg, {side, side});
      const SampleGeometry geometry = resized_whole(image, {32, 32});
      job.add(std::move(image), geometry);
    }
  }
  return made;
}

}  // namespace millrace
