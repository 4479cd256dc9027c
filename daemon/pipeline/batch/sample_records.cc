#include "daemon/pipeline/batch/sample_records.h"

#include <chrono>
#include <cstring>
#include <utility>

#include "proto/shm/segment_layout.h"

namespace millrace {
namespace {

std::uint32_t microseconds(std::chrono::nanoseconds took) {
  return static_cast<std::uint32_t>(std::chrono::duration_cast<std::chrono::microseconds>(took).count());
}

void write_record(const Batch& batch, std::uint32_t position, std::span<const std::string> backends,
                  shm::SampleRecord& record) {
  const std::vector<std::uint32_t>& order = batch.slot().order;
  const std::uint32_t from = order[position];
  const SampleRun& sample = batch.sample(from);
  const SampleRequest& request = batch.request().samples[from];
  const SampleGeometry& geometry = views_of(sample.geometry).front();
  const bool substituted = order.size() == batch.count() && from != position;
  const SampleRun& asked = substituted ? batch.sample(position) : sample;
  const SlotRange place = substituted && batch.layout().copies_stand_ins() ? *asked.place : *sample.place;
  std::memset(&record, 0, sizeof record);
  record.id = raw(request.id);
  record.label = request.label;
  record.pixels_offset = batch.arena().tensor_offset(batch.lease().slot) + place.offset;
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
  record.resized_width = geometry.resized.width;
  record.resized_height = geometry.resized.height;
  record.window_left = geometry.shown().left;
  record.window_top = geometry.shown().top;
  record.fetch_us = microseconds(sample.fetch);
  record.queue_us = microseconds(sample.queued);
  record.decode_us = microseconds(sample.decode);
  record.transform_us = microseconds(sample.transform);
  record.status = asked.bad() ? static_cast<std::uint16_t>(asked.error->code) : std::uint16_t{0};
  record.flags = static_cast<std::uint8_t>(sample.flags | (geometry.flip ? shm::kFlipped : 0) |
                                           (substituted ? shm::kSubstituted : 0));
  record.unpacked = static_cast<std::uint8_t>(sample.unpacked);
  record.index = substituted ? position : from;
  if (!sample.bad()) backends[sample.backend].copy(record.backend, sizeof record.backend - 1);
}

}  // namespace

void write_records(const Batch& batch, std::span<const std::string> backends) {
  std::byte* const base = batch.lease().memory.data() + batch.arena().records_offset(batch.tensor());
  for (std::uint32_t i = 0; i < batch.slot().order.size(); ++i)
    write_record(batch, i, backends, *reinterpret_cast<shm::SampleRecord*>(base + i * sizeof(shm::SampleRecord)));
}

SealedTensor describe_tensor(const Batch& batch) {
  const Recipe& recipe = *batch.request().recipe;
  const auto samples = static_cast<std::uint32_t>(batch.slot().order.size());
  SealedTensor tensor{.memory = batch.arena().memory() == kHostMemory ? 0U : 1U,
                      .slot = batch.lease().slot,
                      .generation = batch.lease().generation,
                      .offset = batch.arena().tensor_offset(batch.lease().slot),
                      .bytes = batch.tensor(),
                      .shape = batch.layout().shape(samples, batch.tensor()),
                      .dtype = recipe.dtype,
                      .records_offset = batch.lease().offset + batch.arena().records_offset(batch.tensor()),
                      .samples = samples};
  tensor.strides = dense_strides(tensor.shape, dtype_bytes(recipe.dtype));
  for (std::size_t view = 0; view < recipe.views.size(); ++view) {
    SealedView sealed{.offset = tensor.offset + batch.layout().place_of_view(view, 0, batch.count()).offset,
                      .shape = batch.layout().shape_of_view(view, samples),
                      .strides = {}};
    sealed.strides = dense_strides(sealed.shape, dtype_bytes(recipe.dtype));
    tensor.views.push_back(std::move(sealed));
  }
  return tensor;
}

}  // namespace millrace
