#include "tests/bench/engine/plain_loop.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <thread>
#include <utility>

#include "daemon/backend/cpu/making/image_maker.h"
#include "daemon/backend/cpu/making/pack_jpeg.h"
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

EncodedImage encoded(const std::string& path) {
  EncodedImage image{.bytes = read_whole(path)};
  const Result<SourceInfo> info = probe_image(image.bytes.view(), SampleLimits{}, UseOrientation::kYes);
  if (!info) broken(path, info.error().message);
  image.info = *info;
  return image;
}

struct Work {
  const std::vector<std::string>& files;
  std::uint64_t epoch;
  std::function<EncodedImage(std::uint64_t number)> take;
  std::function<void(std::uint64_t number, EncodedImage)> give_back;
  const Recipe recipe = train_recipe();
  const SampleLimits limits{};
  std::vector<std::byte> tensors{};    // a batch for each thread
  std::atomic<std::uint64_t> next{0};  // writers and readers: the threads; claims an image
};

void make_one(Work& work, std::uint64_t number, MutableByteView out, ImageWorkspace& workspace) {
  EncodedImage image = work.take(number);
  const RandomKey key{1, work.epoch, SampleId{number}};
  const Result<SampleGeometry> geometry = draw_geometry(work.recipe, {}, image.info, key, work.limits.side);
  if (!geometry) broken(work.files[number], geometry.error().message);
  SampleTask task{0, std::move(image), *geometry, in_host_memory(out)};
  const SampleOutcome outcome = make_image(task, work.recipe, work.limits, workspace);
  if (outcome.error) broken(work.files[number], outcome.error->message);
  work.give_back(number, std::move(task.image));
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

double play(Work& work, std::uint32_t threads) {
  work.tensors.resize(threads * kBatch * image_bytes(work.recipe, kOutput).count);
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::thread> running;
  for (std::size_t i = 0; i < threads; ++i) running.emplace_back([&work, i] { loop(work, i); });
  for (std::thread& thread : running) thread.join();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  return static_cast<double>(work.files.size()) / took.count();
}

// As the cache keeps it; a file that cannot be packed stays as it is.
EncodedImage packed(EncodedImage image) {
  kernels::jpeg::Decoder decoder;
  kernels::packed::Encoder encoder;
  DecodingInLane libraries;
  const auto deadline = Clock::now() + std::chrono::hours(1);
  const auto made = pack_jpeg(image.bytes.view(), image.info, {}, 0, decoder, encoder, deadline, libraries, 0);
  if (!made) return image;
  const ByteView bytes{reinterpret_cast<const std::byte*>(made->data()), made->size()};
  image.kept = CachedForm{CachedKind::kPacked, CachedBlock::copy_of(bytes, CachedBlock::kPadding)};
  image.bytes = {};
  return image;
}

}  // namespace

double plain_loop(const std::vector<std::string>& files, std::uint32_t threads, std::uint64_t epoch) {
  Work work{.files = files,
            .epoch = epoch,
            .take = [&files](std::uint64_t number) { return encoded(files[number]); },
            .give_back = [](std::uint64_t, EncodedImage) {}};
  return play(work, threads);
}

struct PackedFiles::Images {
  std::vector<std::string> files;
  std::vector<EncodedImage> all;
};

PackedFiles::PackedFiles(const std::vector<std::string>& files) : images_(std::make_unique<Images>()) {
  images_->files = files;
  for (const std::string& file : files) images_->all.push_back(packed(encoded(file)));
}

PackedFiles::~PackedFiles() = default;

double PackedFiles::loop(std::uint32_t threads, std::uint64_t epoch) const {
  std::vector<EncodedImage>& all = images_->all;  // an image is one thread's while it is made
  Work work{.files = images_->files,
            .epoch = epoch,
            .take = [&all](std::uint64_t number) { return std::move(all[number]); },
            .give_back = [&all](std::uint64_t number, EncodedImage image) { all[number] = std::move(image); }};
  return play(work, threads);
}

}  // namespace millrace::bench
