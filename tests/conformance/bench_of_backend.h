// What the conformance tests put a backend on: made by the table's row, fed with jobs whose tensors lie between guard
// bytes, and waited for with a limit. Nothing here knows which backend it is.
#pragma once

#include <catch2/catch.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "proto/base/mutex.h"
#include "tests/conformance/backends_under_test.h"

namespace millrace {

// How a backend is to be: each takes of it what it has.
struct BenchSettings {
  std::uint32_t lanes = 0;
  std::string fake{};  // options of the fake backend
  SampleLimits limits{};
};
Settings settings_of(const BenchSettings& bench);

// Those of backends_under_test() that this host can run, and isolated_cpu(); says loudly which it cannot.
std::vector<BackendUnderTest> testable_backends();

// The row's first device.
std::unique_ptr<Backend> start(const BackendRow& row, const BenchSettings& bench = {});

struct Finished {
  std::vector<SampleTask> tasks;
  std::vector<SampleOutcome> outcomes;
};

// Takes what jobs hand back. Thread-safe; outlives the backend.
class Collector {
 public:
  std::function<void(std::vector<SampleTask>, std::vector<SampleOutcome>)> done();
  std::size_t count() const;
  // Everything handed back, in that order, once it is `count` jobs. Fails the test after a minute.
  std::vector<Finished> wait_for(std::size_t count);
  Finished wait_for_one() { return std::move(wait_for(1)[0]); }

 private:
  mutable Mutex mutex_;
  Condition changed_;
  std::vector<Finished> finished_ MILLRACE_GUARDED_BY(mutex_);
};

// Whether the backend says that it cannot make the sample. Fails the test unless such a one then comes back as
// kUnsupported.
bool is_refused(const Backend& backend, const SampleTask& task, const Recipe& recipe, const SampleOutcome& outcome);

// What a backend tells of its device. Thread-safe; outlives the backend.
class HealthOnTheBench {
 public:
  HealthListener listener();
  std::vector<Health> told() const;
  // Whether at least one had been told when note_given_back() was called first. REQUIRES: it was.
  bool told_before_given_back() const;
  void note_given_back();

 private:
  mutable Mutex mutex_;
  std::vector<Health> told_ MILLRACE_GUARDED_BY(mutex_);
  std::optional<bool> told_first_ MILLRACE_GUARDED_BY(mutex_);
};

// A tensor's bytes with guards around them.
class GuardedBytes {
 public:
  explicit GuardedBytes(std::size_t size);
  MutableByteView view() { return MutableByteView(memory_).subspan(kGuard, memory_.size() - 2 * kGuard); }
  std::vector<std::byte> copy() const { return {memory_.begin() + kGuard, memory_.end() - kGuard}; }
  bool untouched() const;  // nobody wrote at all
  bool intact() const;     // nobody wrote outside

 private:
  static constexpr std::ptrdiff_t kGuard = 256;
  static constexpr std::byte kFill{0xA5};
  std::vector<std::byte> memory_;
};

// With what the header says that it has, if there is a header.
EncodedImage encoded(const std::vector<std::byte>& bytes, ImageFormat format, Size stored, int orientation = 1);

// A JPEG of its own for each seed.
EncodedImage jpeg_image(std::uint32_t width, std::uint32_t height, std::uint32_t seed);

// Those of the table.
std::vector<ImageFormat> all_formats();

// A picture of a format, the same for each.
EncodedImage image_of(ImageFormat format, std::uint32_t width, std::uint32_t height);

// The whole image resized to `output`.
SampleGeometry resized_whole(const EncodedImage& image, Size output);

// A job of tasks that all use one recipe, and the memory that they fill.
struct JobOnTheBench {
  explicit JobOnTheBench(Recipe r = {}) : recipe(std::make_shared<const Recipe>(r)) {}

  std::shared_ptr<const Recipe> recipe;
  std::vector<SampleTask> tasks;
  std::vector<std::unique_ptr<GuardedBytes>> tensors;  // of each task, its views one after the other
  std::shared_ptr<StopFlag> stop = std::make_shared<StopFlag>();

  void add(EncodedImage image, const SampleGeometry& geometry);
  // Moves the tasks out.
  DecodeJob job(Collector& collector, std::shared_ptr<const void> keep_alive = nullptr);
};

// Jobs of `samples` images each, resized to 32x32.
std::vector<JobOnTheBench> small_jobs(std::size_t jobs, std::uint32_t samples, std::uint32_t side = 64);

}  // namespace millrace
