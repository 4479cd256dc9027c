#include "tests/bench/plain_loop.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "daemon/backend/cpu/making/image_maker.h"
#include "daemon/formats/probe.h"
#include "daemon/plan/draw_geometry.h"
#include "proto/base/unique_fd.h"

namespace millrace::bench {
namespace {

constexpr Size kOutput{224, 224};
constexpr std::size_t kBatch = 64;

Recipe train_recipe() {
  Recipe recipe;
  recipe.crop = RandomResizedCrop{};
  recipe.resize = ExactSize{kOutput};
  recipe.flip_probability = 0.5F;
  return recipe;
}

[[noreturn]] void broken(const std::string& path, const std::string& why) {
  std::fprintf(stderr, "millrace_bench: plain loop: %s: %s\n", path.c_str(), why.c_str());
  std::exit(1);
}

EncodedBytes read_whole(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) broken(path, "cannot be read");
  EncodedBytes bytes(static_cast<std::size_t>(status.st_size));
  if (::read(file.get(), bytes.writable().data(), bytes.size()) != status.st_size) broken(path, "cannot be read");
  return bytes;
}

struct Work {
  const std::vector<std::string>& files;
  const Recipe recipe = train_recipe();
  const SampleLimits limits{};
  std::uint64_t epoch;
  std::vector<std::byte> tensors;      // a batch for each thread
  std::atomic<std::uint64_t> next{0};  // writers and readers: the threads; claims an image
};

void make_one(Work& work, std::uint64_t number, MutableByteView out, ImageWorkspace& workspace) {
  const std::string& path = work.files[number];
  EncodedBytes bytes = read_whole(path);
  const Result<SourceInfo> info = probe_image(bytes.view(), work.limits, UseOrientation::kYes);
  if (!info) broken(path, info.error().message);
  const RandomKey key{1, work.epoch, SampleId{number}};
  const Result<SampleGeometry> geometry = draw_geometry(work.recipe, {}, *info, key, work.limits.side);
  if (!geometry) broken(path, geometry.error().message);
  const SampleTask task{0, EncodedImage{std::move(bytes), *info}, *geometry, in_host_memory(out)};
  const SampleOutcome outcome = make_image(task, work.recipe, work.limits, workspace);
  if (outcome.error) broken(path, outcome.error->message);
}

void loop(Work& work, std::size_t thread) {
  const std::size_t image = image_bytes(work.recipe, kOutput).count;
  ImageWorkspace workspace;
  std::size_t place = 0;
  for (std::uint64_t number = work.next++; number < work.files.size(); number = work.next++) {
    const std::size_t at = (thread * kBatch + place++ % kBatch) * image;
    make_one(work, number, MutableByteView(work.tensors).subspan(at, image), workspace);
  }
}

}  // namespace

double plain_loop(const std::vector<std::string>& files, std::uint32_t threads, std::uint64_t epoch) {
  Work work{.files = files, .epoch = epoch};
  work.tensors.resize(threads * kBatch * image_bytes(work.recipe, kOutput).count);
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::thread> running;
  for (std::size_t i = 0; i < threads; ++i) running.emplace_back([&work, i] { loop(work, i); });
  for (std::thread& thread : running) thread.join();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  return static_cast<double>(files.size()) / took.count();
}

}  // namespace millrace::bench
