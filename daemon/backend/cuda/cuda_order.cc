#include "daemon/backend/cuda/cuda_order.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>

#include "daemon/backend/cuda/cuda_memory.h"
#include "daemon/backend/words.h"
#include "daemon/draw/draw_erasing.h"
#include "daemon/draw/draw_steps.h"
#include "daemon/draw/random.h"

namespace millrace {
namespace {

constexpr std::uint32_t kMostSide = 65'535;  // of what the kernels resample

Error unsupported(const char* why) {
  return Error{Code::kUnsupported, why};
}

Error too_many() {
  return Error{Code::kExhausted, "more views, steps or erased parts than a batch has room for"};
}

// The file, and zeroes up to where the next one begins.
void put_file(std::span<std::byte> room, ByteView file) {
  std::memcpy(room.data(), file.data(), file.size());
  std::memset(room.data() + file.size(), 0, room.size() - file.size());
}

CudaBox on_wire(const Box& box) {
  return {box.left, box.top, box.width, box.height};
}

// The same part of a picture of that width whose left and right have changed places.
Box mirrored(const Box& box, std::uint32_t width) {
  const std::int64_t left = std::int64_t{width} - (std::int64_t{box.left} + box.width);
  return {static_cast<std::int32_t>(left), box.top, box.width, box.height};
}

Result<void> can_make_view(const SampleGeometry& geometry) {
  const Size resized = geometry.resized, output = geometry.output();
  if (std::max({resized.width, resized.height, output.width, output.height}) > kMostSide)
    return unsupported("an image of more than 65,535 pixels a side is too large for the GPU's kernels");
  return {};
}

}  // namespace

Result<void> cuda_can_make(const SampleFacts& facts, const Recipe& recipe, const CudaStaging& staging) {
  const SourceInfo& source = facts.source;
  if (source.format != ImageFormat::kJpeg) return unsupported("the GPU decodes JPEG files alone");
  if (source.has.passes && facts.kept != CachedKind::kPacked)
    return unsupported(
        "the GPU makes a progressive JPEG file of its packed form alone: none is kept, or the file has "
        "changed too lately for its use (cache.settled_seconds)");
  if (source.has.cmyk) return unsupported("the GPU decodes no CMYK");
  if (recipe.indices) return unsupported("the GPU reads no indices");
  if (facts.kept == CachedKind::kTensor && !facts.pinned) return unsupported("the tensor is kept, finished");
  if (std::max(source.stored.width, source.stored.height) > kMostSide)
    return unsupported("an image of more than 65,535 pixels a side is too large for the GPU's kernels");
  const auto recipes = views_of(recipe);
  const auto geometries = views_of(facts.geometry);
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < std::min(recipes.size(), geometries.size()); ++i) {
    MILLRACE_TRY_VOID(can_make_view(geometries[i]));
    bytes += image_bytes(recipe, geometries[i].output()).count;
  }
  if (bytes > staging.tensor_bytes) {
    return Error{Code::kUnsupported, "the tensor of all views has " + to_text(Bytes{bytes}) +
                                         ", a lane's part of cuda.staging has room for " +
                                         to_text(Bytes{staging.tensor_bytes}) +
                                         ": raise cuda.staging, or have fewer cuda.lanes"};
  }
  return {};
}

bool needs_pixel_noise(const SampleTask& task, const Recipe& recipe) {
  const auto recipes = views_of(recipe);
  const auto geometries = views_of(task.geometry);
  for (std::size_t i = 0; i < recipes.size(); ++i) {
    const std::optional<Erasing>& erasing = recipes[i].erasing;
    if (erasing && erasing->noise == Erasing::Noise::kPixel &&
        !draw_erased(*erasing, geometries[i].output(), *geometries[i].draws).empty())
      return true;
  }
  return false;
}

bool is_packed(const EncodedImage& image) {
  return kind_kept(image) == CachedKind::kPacked;
}

ByteView input_of(const EncodedImage& image) {
  return is_packed(image) ? image.kept->bytes->view() : image.bytes.view();
}

std::uint64_t room_of(std::size_t file_bytes) {
  constexpr std::uint64_t kApart = CudaStaging::kFilesApart;
  return (file_bytes + kApart + kApart - 1) / kApart * kApart;
}

std::uint64_t tensor_bytes_of(const SampleTask& task) {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i <= task.further_outs.size(); ++i) bytes += task.out_of_view(i).bytes.count;
  return bytes;
}

bool is_on_device(const Destination& out) {
  return out.memory != kHostMemory;
}

std::uint64_t memory_of(const Destination& out) {
  return is_on_device(out) ? CudaPlace::of(out.offset).memory : 0;
}

CudaBatchWriter::CudaBatchWriter(const Recipe& recipe, Fidelity fidelity, std::uint64_t memory,
                                 const CudaBatchRooms& rooms, std::span<std::byte> encoded)
    : recipe_(recipe),
      rooms_(rooms),
      encoded_(encoded),
      batch_{.fast = fidelity == Fidelity::kFast,
             .dtype = static_cast<std::uint8_t>(recipe.dtype),
             .layout = static_cast<std::uint8_t>(recipe.layout),
             .channels = static_cast<std::uint8_t>(recipe.channels),
             .range = static_cast<std::uint8_t>(recipe.range),
             .normalise = recipe.normalise.has_value(),
             .memory = memory} {
  if (recipe.normalise) {
    std::copy_n(recipe.normalise->mean.begin(), 3, std::begin(batch_.mean));
    std::copy_n(recipe.normalise->std.begin(), 3, std::begin(batch_.std));
  }
  if (recipe.patches) {
    batch_.patch_width = recipe.patches->size.width;
    batch_.patch_height = recipe.patches->size.height;
    batch_.patch_merge = recipe.patches->merge;
    batch_.patch_temporal = recipe.patches->temporal;
  }
}

Result<void> CudaBatchWriter::add(const SampleTask& task) {
  const ByteView input = input_of(task.image);
  const std::uint64_t room = room_of(input.size());
  if (batch_.images == rooms_.orders.size() || room > encoded_.size() - batch_.encoded_bytes) return too_many();
  const auto recipes = views_of(recipe_);
  const auto geometries = views_of(task.geometry);
  rooms_.orders[batch_.images] = {.at = batch_.encoded_bytes,
                                  .bytes = static_cast<std::uint32_t>(input.size()),
                                  .views = static_cast<std::uint16_t>(recipes.size()),
                                  .orientation = task.image.info.orientation,
                                  .stored_width = static_cast<std::uint16_t>(task.image.info.stored.width),
                                  .stored_height = static_cast<std::uint16_t>(task.image.info.stored.height),
                                  .packed = is_packed(task.image) ? 1U : 0U,
                                  .verdict = 1};
  for (std::size_t i = 0; i < recipes.size(); ++i)
    MILLRACE_TRY_VOID(add_view(recipes[i], geometries[i], task.out_of_view(i)));
  put_file(encoded_.subspan(batch_.encoded_bytes, room), input);
  batch_.encoded_bytes += room;
  ++batch_.images;
  return {};
}

Result<void> CudaBatchWriter::add_view(const Recipe& recipe, const SampleGeometry& geometry, const Destination& out) {
  if (batch_.views == rooms_.views.size()) return too_many();
  CudaView view{.crop = on_wire(geometry.crop),
                .resized_width = static_cast<std::int32_t>(geometry.resized.width),
                .resized_height = static_cast<std::int32_t>(geometry.resized.height),
                .window = on_wire(geometry.window),
                .out_at = is_on_device(out) ? CudaPlace::of(out.offset).offset : 0,
                .filter = static_cast<std::uint8_t>(geometry.filter.value_or(recipe.filter)),
                .flip = geometry.flip ? std::uint8_t{1} : std::uint8_t{0}};
  if (geometry.canvas) {
    const std::uint32_t width = geometry.resized.width;
    view.shown = on_wire(geometry.flip ? mirrored(*geometry.canvas, width) : *geometry.canvas);
    view.inner = on_wire(geometry.flip ? mirrored(geometry.window, width) : geometry.window);
    view.padded = 1;
    view.pad = static_cast<std::uint8_t>(recipe.pad->mode);
    std::copy(recipe.pad->fill.begin(), recipe.pad->fill.end(), std::begin(view.fill));
  }
  MILLRACE_TRY_VOID(add_steps(recipe, geometry, view));
  MILLRACE_TRY_VOID(add_erased(recipe, geometry, view));
  rooms_.views[batch_.views++] = view;
  return {};
}

// Whether the list is one that can be carried out, the process says: such an image is the CPU's, whose error it gets.
Result<void> CudaBatchWriter::add_steps(const Recipe& recipe, const SampleGeometry& geometry, CudaView& view) {
  if (recipe.steps.empty()) return {};
  drawn_.clear();
  draw_steps(recipe.steps, in_kernels(geometry.output()), *geometry.draws, drawn_);
  if (drawn_.size() > rooms_.steps.size() - batch_.steps) return too_many();
  view.first_step = batch_.steps;
  view.steps = static_cast<std::uint32_t>(drawn_.size());
  std::copy(drawn_.begin(), drawn_.end(), rooms_.steps.begin() + batch_.steps);
  batch_.steps += view.steps;
  return {};
}

Result<void> CudaBatchWriter::add_erased(const Recipe& recipe, const SampleGeometry& geometry, CudaView& view) {
  if (!recipe.erasing) return {};
  const std::vector<Box> boxes = draw_erased(*recipe.erasing, geometry.output(), *geometry.draws);
  if (boxes.size() > rooms_.erased.size() - batch_.erased) return too_many();
  view.first_erased = batch_.erased;
  view.erased = static_cast<std::uint32_t>(boxes.size());
  RandomStream noise(*geometry.draws, RandomStream::Use::kNoise);
  for (const Box& box : boxes) {
    CudaErased& erased = rooms_.erased[batch_.erased++];
    erased.box = on_wire(box);
    for (std::size_t channel = 0; channel < channel_count(recipe_.channels); ++channel) {
      const bool is_drawn = recipe.erasing->noise == Erasing::Noise::kChannel;
      erased.value[channel] = is_drawn ? static_cast<float>(noise.normal()) : recipe.erasing->value[channel];
    }
  }
  return {};
}

}  // namespace millrace
