#include "daemon/backend/cuda/cuda_lane.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "daemon/backend/cuda/cuda_memory.h"
#include "daemon/backend/words.h"
#include "proto/base/printable.h"

namespace millrace {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kMostSide = 65'535;  // of what the kernels resample

Error unsupported(std::string why) {
  return Error{Code::kUnsupported, std::move(why)};
}

std::uint64_t room_of(std::size_t file_bytes) {
  constexpr std::uint64_t kApart = CudaStaging::kFilesApart;
  return (file_bytes + kApart + kApart - 1) / kApart * kApart;
}

bool is_packed(const EncodedImage& image) {
  return kind_kept(image) == CachedKind::kPacked;
}

// What the GPU makes the tensor of: what is kept of the file, or the file.
ByteView input_of(const EncodedImage& image) {
  return is_packed(image) ? image.kept->bytes->view() : image.bytes.view();
}

bool is_on_device(const Destination& out) {
  return out.memory != kHostMemory;
}

// 0: the host's.
std::uint64_t memory_of(const Destination& out) {
  return is_on_device(out) ? CudaPlace::of(out.offset).memory : 0;
}

CudaOrder order_of(const SampleTask& task, std::uint64_t at) {
  const SampleGeometry& geometry = task.geometry;
  return {.at = at,
          .bytes = static_cast<std::uint32_t>(input_of(task.image).size()),
          .flip = static_cast<std::uint16_t>(geometry.flip ? 1 : 0),
          .orientation = task.image.info.orientation,
          .crop_left = geometry.crop.left,
          .crop_top = geometry.crop.top,
          .crop_width = geometry.crop.width,
          .crop_height = geometry.crop.height,
          .resized_width = static_cast<std::int32_t>(geometry.resized.width),
          .resized_height = static_cast<std::int32_t>(geometry.resized.height),
          .window_left = geometry.window.left,
          .window_top = geometry.window.top,
          .window_width = geometry.window.width,
          .window_height = geometry.window.height,
          .stored_width = static_cast<std::uint16_t>(task.image.info.stored.width),
          .stored_height = static_cast<std::uint16_t>(task.image.info.stored.height),
          .packed = is_packed(task.image) ? 1U : 0U,
          .out_at = is_on_device(task.out) ? CudaPlace::of(task.out.offset).offset : 0,
          .verdict = 1};
}

CudaBatch batch_of(const Recipe& recipe, Fidelity fidelity, Size size, std::size_t images) {
  CudaBatch batch{.images = static_cast<std::uint32_t>(images),
                  .width = size.width,
                  .height = size.height,
                  .filter = static_cast<std::uint8_t>(recipe.filter),
                  .fast = fidelity == Fidelity::kFast,
                  .dtype = static_cast<std::uint8_t>(recipe.dtype),
                  .layout = static_cast<std::uint8_t>(recipe.layout),
                  .channels = static_cast<std::uint8_t>(recipe.channels),
                  .range = static_cast<std::uint8_t>(recipe.range),
                  .normalise = recipe.normalise.has_value()};
  if (recipe.normalise) {
    std::copy_n(recipe.normalise->mean.begin(), 3, std::begin(batch.mean));
    std::copy_n(recipe.normalise->std.begin(), 3, std::begin(batch.std));
  }
  if (recipe.patches) {
    batch.patch_width = recipe.patches->size.width;
    batch.patch_height = recipe.patches->size.height;
    batch.patch_merge = recipe.patches->merge;
    batch.patch_temporal = recipe.patches->temporal;
  }
  return batch;
}

// The file, and zeroes up to where the next one begins.
void put_file(std::span<std::byte> room, ByteView file) {
  std::memcpy(room.data(), file.data(), file.size());
  std::memset(room.data() + file.size(), 0, room.size() - file.size());
}

std::string why_not(const CudaOrder& order_untrusted) {
  const char* const begin = order_untrusted.why;
  const char* const end = std::find(begin, std::end(order_untrusted.why), '\0');
  return printable(std::string_view(begin, static_cast<std::size_t>(end - begin)));
}

}  // namespace

Result<void> cuda_can_make(const SampleFacts& facts, const Recipe& recipe, const CudaStaging& staging) {
  const SourceInfo& source = facts.source;
  if (source.format != ImageFormat::kJpeg) return unsupported("the GPU decodes JPEG files alone");
  if (source.has.passes && facts.kept != CachedKind::kPacked)
    return unsupported("the GPU decodes no progressive JPEG files of which no packed form is kept");
  if (source.has.cmyk) return unsupported("the GPU decodes no CMYK");
  if (!recipe.views.empty()) return unsupported("the GPU makes one view of a sample");
  if (facts.geometry.canvas) return unsupported("the GPU does not pad");
  if (facts.geometry.filter) return unsupported("the GPU draws no filters");
  if (recipe.indices) return unsupported("the GPU reads no indices");
  if (is_augmented(recipe)) return unsupported("the GPU does no steps of augmentation, nor erasing");
  const Size resized = facts.geometry.resized;
  if (std::max({resized.width, resized.height, source.stored.width, source.stored.height}) > kMostSide)
    return unsupported("an image of more than 65,535 pixels a side is too large for the GPU's kernels");
  if (image_bytes(recipe, facts.geometry.output()).count > staging.tensor_bytes)
    return unsupported("the tensor is larger than a lane's part of cuda.staging");
  return {};
}

// Whether the GPU may try it; else it is finished.
bool CudaLane::is_for_gpu(Work& work, std::size_t i) const {
  const SampleTask& task = work.task(i);
  const Recipe& recipe = *work.job().recipe;
  Result<void> fine = check_task(task, recipe, work.limits());
  if (fine && task.out.memory != memory_) fine = check_on_host(task, recipe);
  const EncodedImage& image = task.image;
  if (fine) fine = cuda_can_make({image.info, task.geometry, work.job().fidelity, kind_kept(image)}, recipe, staging_);
  if (fine && image.bytes.size() == 0 && image.kept && !is_packed(image)) {
    work.outcome(i).read_again = true;
    fine = unsupported("the GPU takes no kept tensors");
  }
  if (fine && room_of(input_of(image).size()) > staging_.encoded_bytes)
    fine = unsupported("the file is larger than a lane's part of cuda.staging");
  if (!fine) work.finish(i, std::move(fine).error());
  return !work.is_finished(i);
}

std::vector<SampleOutcome> CudaLane::run(const DecodeJob& job, const SampleLimits& limits,
                                         const std::function<bool()>& stopped) {
  Work work(job, limits, stopped);
  return work.work_off([&](std::size_t& next) { make(work, take(work, next)); });
}

// The next ones whose tensors are of one size and in one memory, and which fit the staging together. `next`: the first that is not finished.
std::vector<std::size_t> CudaLane::take(Work& work, std::size_t& next) const {
  std::vector<std::size_t> tasks;
  std::uint64_t files = 0, tensors = 0, memory = 0;
  Size size{};
  for (std::size_t i = next; i < work.job().tasks.size() && tasks.size() < kMostCudaImages; ++i) {
    if (work.is_finished(i) || !is_for_gpu(work, i)) continue;
    const Size output = work.task(i).geometry.output();
    if (tasks.empty()) {
      size = output;
      memory = memory_of(work.task(i).out);
    }
    if (output != size || memory_of(work.task(i).out) != memory) continue;
    files += room_of(input_of(work.task(i).image).size());
    tensors += work.task(i).out.bytes.count;
    if (files > staging_.encoded_bytes || tensors > staging_.tensor_bytes) break;
    tasks.push_back(i);
  }
  next = work.next_after(next, tasks);
  return tasks;
}

// Too many for the GPU's memory are halved; one alone that is too much is the CPU's.
void CudaLane::make(Work& work, Indices tasks) {
  if (tasks.empty()) return;
  if (work.stopped()) return work.finish_all(tasks, cancelled_error());
  const std::shared_ptr<CudaWorker> worker = device_.wanted(patience_);
  if (!worker) return work.finish_all(tasks, {Code::kUnavailable, "the GPU is lost, and not back yet"});
  const Clock::time_point begun = Clock::now();
  const Result<void> asked = ask(work, tasks, *worker);
  if (!asked && asked.error().code == Code::kExhausted && tasks.size() > 1) {
    make(work, tasks.first(tasks.size() / 2));
    return make(work, tasks.subspan(tasks.size() / 2));
  }
  if (!asked) {
    const Code code = asked.error().code;
    if (code == Code::kUnavailable) device_.lost(worker, asked.error().message);
    const bool is_lost = code == Code::kUnavailable || code == Code::kNotFound;  // all of it, or the session's memory
    return work.finish_all(tasks, {is_lost ? Code::kUnavailable : Code::kUnsupported, asked.error().message});
  }
  collect(work, tasks, worker->lane(number_));
  work.note_time(tasks, Clock::now() - begun);
}

Result<void> CudaLane::ask(const Work& work, Indices tasks, CudaWorker& worker) {
  CudaLaneChannel& channel = worker.lane(number_);
  CudaBatch batch =
      batch_of(*work.job().recipe, work.job().fidelity, work.task(tasks[0]).geometry.output(), tasks.size());
  batch.memory = memory_of(work.task(tasks[0]).out);
  for (std::size_t n = 0; n < tasks.size(); ++n) {
    const SampleTask& task = work.task(tasks[n]);
    const ByteView input = input_of(task.image);
    const std::uint64_t room = room_of(input.size());
    put_file(channel.encoded().subspan(batch.encoded_bytes, room), input);
    channel.orders()[n] = order_of(task, batch.encoded_bytes);
    batch.encoded_bytes += room;
  }
  return channel.ask(batch, patience_);
}

void CudaLane::collect(Work& work, Indices tasks, const CudaLaneChannel& channel) const {
  std::uint64_t at = 0;
  for (std::size_t n = 0; n < tasks.size(); ++n) {
    const EncodedImage& image = work.task(tasks[n]).image;
    const Destination& out = work.task(tasks[n]).out;
    const CudaOrder& order = channel.orders()[n];
    const std::uint32_t verdict = order.verdict;
    const bool is_made = verdict == 0;
    if (is_made && !is_on_device(out)) std::memcpy(out.host, channel.tensors().data() + at, out.bytes.count);
    work.finish(tasks[n],
                is_made ? std::optional<Error>() : unsupported("the GPU leaves it to others: " + why_not(order)));
    if (verdict == 2) work.outcome(tasks[n]).read_again = is_packed(image) && image.bytes.size() == 0;
    at += out.bytes.count;
  }
}

}  // namespace millrace
