#include "daemon/pipeline/mend.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "daemon/pipeline/bad_sample_guard.h"
#include "proto/shm/segment_layout.h"

namespace millrace {
namespace {

std::string named(const SampleFailure& failure) {
  return "sample " + std::to_string(failure.index) + " (" + failure.source + "): " + failure.error.message;
}

Error failed_by(const SampleFailure& failure) {
  return Error{failure.error.code,
               named(failure) + "; the batch's on_error is fail (skip, zero or substitute keep the others)"};
}

Error no_stand_in(const SampleFailure& failure) {
  return Error{failure.error.code, named(failure) +
                                       "; no other sample of the batch is good, so none can stand in: its " +
                                       "on_error is substitute (skip leaves bad ones out, zero blanks them)"};
}

void keep_all(BatchRun& batch) {
  batch.order.resize(batch.count());
  std::iota(batch.order.begin(), batch.order.end(), 0U);
}

// Moves the good samples down over the bad ones, keeping their order.
std::vector<Repair> skip_bad(BatchRun& batch) {
  std::vector<Repair> repairs;
  Bytes end{0};
  for (std::uint32_t i = 0; i < batch.count(); ++i) {
    SampleRun& sample = batch.samples[i];
    if (sample.error) continue;
    const Bytes begin = batch.one_size ? end : align_up(end, packed_alignment(*batch.request.recipe));
    if (begin.count != sample.offset) {
      const std::uint64_t from = std::exchange(sample.offset, begin.count);
      repairs.push_back(Repair{range_of(sample), from});
    }
    end = begin + sample.bytes;
    batch.order.push_back(i);
  }
  batch.tensor = end;
  return repairs;
}

// A sample without a place (unreadable, in a packed batch) becomes an empty image; one in a one-size batch has its
// place anyway.
void place_unreadable(BatchRun& batch, std::uint32_t index) {
  SampleRun& sample = batch.samples[index];
  if (sample.laid_out) return;
  sample.bytes = batch.one_size ? image_bytes(*batch.request.recipe, *batch.one_size) : Bytes{0};
  sample.offset = batch.one_size ? (sample.bytes * index).count : 0;
  const Size size = batch.one_size.value_or(Size{0, 0});
  sample.geometry = SampleGeometry{};
  sample.geometry.window = Box{0, 0, static_cast<std::int32_t>(size.width), static_cast<std::int32_t>(size.height)};
  sample.laid_out = true;
}

std::vector<Repair> zero_bad(BatchRun& batch) {
  std::vector<Repair> repairs;
  for (std::uint32_t i = 0; i < batch.count(); ++i) {
    SampleRun& sample = batch.samples[i];
    if (!sample.error) continue;
    place_unreadable(batch, i);
    sample.flags |= shm::kZeroed;
    if (sample.bytes.count > 0) repairs.push_back(Repair{range_of(sample), {}});
  }
  keep_all(batch);
  return repairs;
}

// The nearest good sample before `index`, else after it; count() when there is none.
std::uint32_t stand_in(const BatchRun& batch, std::uint32_t index) {
  const auto good = [&](std::uint32_t i) { return !batch.samples[i].error; };
  for (std::uint32_t i = index; i-- > 0;) {
    if (good(i)) return i;
  }
  for (std::uint32_t i = index + 1; i < batch.count(); ++i) {
    if (good(i)) return i;
  }
  return batch.count();
}

// One-size: a copy of the stand-in's pixels. Packed: the record points at them, for sizes differ.
Result<std::vector<Repair>> substitute_bad(BatchRun& batch) {
  std::vector<Repair> repairs;
  keep_all(batch);
  for (std::uint32_t i = 0; i < batch.count(); ++i) {
    if (!batch.samples[i].error) continue;
    const std::uint32_t other = stand_in(batch, i);
    if (other == batch.count()) return no_stand_in(batch.failure(i));
    if (batch.one_size) {
      place_unreadable(batch, i);
      repairs.push_back(Repair{range_of(batch.samples[i]), batch.samples[other].offset});
    }
    batch.order[i] = other;
  }
  return repairs;
}

void write_record(const BatchRun& batch, std::uint32_t position, std::span<const std::string> backends,
                  shm::SampleRecord& record) {
  const std::uint32_t from = batch.order[position];
  const SampleRun& sample = batch.samples[from];
  const SampleRequest& request = batch.request.samples[from];
  const SampleGeometry& geometry = sample.geometry;
  const bool substituted = batch.order.size() == batch.count() && from != position;
  const SampleRun& place = substituted && batch.one_size ? batch.samples[position] : sample;
  std::memset(&record, 0, sizeof record);
  record.id = raw(request.id);
  record.label = request.label;
  record.pixels_offset = batch.arena->tensor_offset(batch.lease->slot) + place.offset;
  record.pixels_bytes = place.bytes.count;
  record.width = geometry.output().width;
  record.height = geometry.output().height;
  record.source_width = sample.source ? sample.source->stored.width : 0;
  record.source_height = sample.source ? sample.source->stored.height : 0;
  record.orientation = sample.source ? sample.source->orientation : 0;
  record.crop_left = geometry.crop.left;
  record.crop_top = geometry.crop.top;
  record.crop_width = geometry.crop.width;
  record.crop_height = geometry.crop.height;
  record.fetch_us = static_cast<std::uint32_t>(sample.fetch.count());
  record.queue_us = static_cast<std::uint32_t>(sample.queued.count());
  record.decode_us = static_cast<std::uint32_t>(sample.decode.count());
  record.transform_us = static_cast<std::uint32_t>(sample.transform.count());
  const std::optional<Error>& error = substituted ? batch.samples[position].error : sample.error;
  record.status = error ? static_cast<std::uint16_t>(error->code) : std::uint16_t{0};
  record.flags = static_cast<std::uint8_t>(sample.flags | (geometry.flip ? shm::kFlipped : 0) |
                                           (substituted ? shm::kSubstituted : 0));
  record.index = substituted ? position : from;
  if (!sample.error) backends[sample.backend].copy(record.backend, sizeof record.backend - 1);
}

using Axes = std::vector<std::uint64_t>;

Axes image_shape(const Recipe& recipe, std::uint64_t images, Size size) {
  const std::uint64_t channels = channel_count(recipe.channels);
  if (recipe.layout == Layout::kNhwc) return {images, size.height, size.width, channels};
  return {images, channels, size.height, size.width};
}

// REQUIRES: recipe.patches.
Axes patches_shape(const Recipe& recipe, Bytes tensor) {
  const Patches& patches = *recipe.patches;
  const std::uint64_t patch = image_bytes(recipe, patches.size).count;
  return {tensor.count / patch, channel_count(recipe.channels), patches.temporal, patches.size.height,
          patches.size.width};
}

// A packed tensor is one axis. An image begins at a multiple of 64 bytes and no element has more, so that the gaps
// between images are whole elements, too.
static_assert(kPackedAlignment % dtype_bytes(DType::kFloat32).count == 0);

Axes tensor_shape(const BatchRun& batch) {
  const Recipe& recipe = *batch.request.recipe;
  if (recipe.patches) return patches_shape(recipe, batch.tensor);
  if (batch.one_size) return image_shape(recipe, batch.order.size(), *batch.one_size);
  return {batch.tensor.count / dtype_bytes(recipe.dtype).count};
}

Axes dense_strides(const Axes& shape, Bytes element) {
  Axes strides(shape.size(), element.count);
  for (std::size_t axis = shape.size() - 1; axis-- > 0;) strides[axis] = strides[axis + 1] * shape[axis + 1];
  return strides;
}

}  // namespace

Result<std::vector<Repair>> mend(BatchRun& batch) {
  const auto bad = [](const SampleRun& sample) { return sample.error.has_value(); };
  const auto first = std::find_if(batch.samples.begin(), batch.samples.end(), bad);
  if (first == batch.samples.end()) {
    keep_all(batch);
    return std::vector<Repair>{};
  }
  const bool none_good = std::all_of(first, batch.samples.end(), bad) && first == batch.samples.begin();
  if (none_good && batch.request.guard == Guard::kOn) return BadSampleGuard::none_good(batch.count(), batch.failure(0));
  switch (batch.request.on_error) {
    case OnError::kFail:
      return failed_by(batch.failure(static_cast<std::uint32_t>(first - batch.samples.begin())));
    case OnError::kSkip:
      return skip_bad(batch);
    case OnError::kZero:
      return zero_bad(batch);
    case OnError::kSubstitute:
      return substitute_bad(batch);
  }
  return Error{Code::kInternal, "unknown on_error"};
}

void write_records(const BatchRun& batch, std::span<const std::string> backends) {
  std::byte* const base = batch.lease->memory.data() + batch.arena->records_offset(batch.tensor);
  for (std::uint32_t i = 0; i < batch.order.size(); ++i)
    write_record(batch, i, backends, *reinterpret_cast<shm::SampleRecord*>(base + i * sizeof(shm::SampleRecord)));
}

SealedTensor describe_tensor(const BatchRun& batch) {
  const Recipe& recipe = *batch.request.recipe;
  SealedTensor tensor{.memory = batch.arena->memory() == kHostMemory ? 0U : 1U,
                      .slot = batch.lease->slot,
                      .generation = batch.lease->generation,
                      .offset = batch.arena->tensor_offset(batch.lease->slot),
                      .bytes = batch.tensor,
                      .shape = tensor_shape(batch),
                      .dtype = recipe.dtype,
                      .records_offset = batch.lease->offset + batch.arena->records_offset(batch.tensor),
                      .samples = static_cast<std::uint32_t>(batch.order.size())};
  tensor.strides = dense_strides(tensor.shape, dtype_bytes(recipe.dtype));
  return tensor;
}

}  // namespace millrace
