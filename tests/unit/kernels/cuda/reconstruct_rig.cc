#include "tests/unit/kernels/cuda/reconstruct_rig.h"

#include <catch2/catch.hpp>

#include "daemon/backend/cpu/decoders/jpeg/jpeg_decoder.h"
#include "kernels/cpu/orient.h"
#include "kernels/cuda/host_block.h"
#include "kernels/cuda/plan/tile_plan.h"
#include "kernels/cuda/plan/weight_table.h"
#include "kernels/cuda/reconstruct/reconstruct.h"
#include "kernels/tensor/reference.h"
#include "tests/unit/kernels/jpeg/jpeg_rig.h"

namespace millrace {

namespace cuda = kernels::cuda;

namespace {

kernels::Size resized_size(const cuda::BatchRecipe& recipe, const TensorCut& cut) {
  return cut.resized.value_or(recipe.size);
}

// The picture as its orientation says.
struct Turned {
  std::vector<std::uint8_t> pixels;
  kernels::MutableU8View view;

  Turned(const kernels::U8View& stored, kernels::Orientation orientation)
      : pixels(static_cast<std::size_t>(stored.width) * static_cast<std::size_t>(stored.height * stored.channels)) {
    const kernels::Size size = kernels::oriented(stored.size(), orientation);
    view = {pixels.data(), size.width, size.height, stored.channels, std::ptrdiff_t{size.width} * stored.channels};
    kernels::reference::orient(stored, orientation, view);
  }
};

void put_cut(const TensorCut& cut, kernels::Size stored, cuda::ImageJob& job) {
  const auto u16 = [](int value) { return static_cast<std::uint16_t>(value); };
  const bool swaps = kernels::swaps_sides(cut.orientation);
  const kernels::Box crop = kernels::stored_box(cut.crop, stored, cut.orientation);
  job.turn = cuda::turn_of(cut.orientation);
  job.flip = cut.flip == kernels::Flip::kHorizontal;
  job.crop_left = u16(crop.left);
  job.crop_top = u16(crop.top);
  job.crop_width = u16(crop.width);
  job.crop_height = u16(crop.height);
  if (!cut.resized) return;
  job.resized_width = u16(swaps ? cut.resized->height : cut.resized->width);
  job.resized_height = u16(swaps ? cut.resized->width : cut.resized->height);
  job.window_left = u16(swaps ? cut.top : cut.left);
  job.window_top = u16(swaps ? cut.left : cut.top);
}

// Output elements before anything is made: what nobody writes shows.
constexpr std::uint8_t kUnwritten = 0xA5;

}  // namespace

TokenBatch::TokenBatch(const cuda::BatchRecipe& recipe)
    : recipe_(recipe), table_(recipe.store), spec_(tensor_spec(recipe)) {}

cuda::ImageJob TokenBatch::job_of(const JpegCoefficients& image, const TensorCut& cut) {
  const bool grey = image.planes.size() == 1;
  const int h = grey ? 1 : image.planes[0].h, v = grey ? 1 : image.planes[0].v;
  cuda::ImageJob job{};
  job.width = static_cast<std::uint16_t>(image.width);
  job.height = static_cast<std::uint16_t>(image.height);
  job.mcu_columns = static_cast<std::uint16_t>((image.width + 8 * h - 1) / (8 * h));
  job.mcu_rows = static_cast<std::uint16_t>((image.height + 8 * v - 1) / (8 * v));
  job.components = static_cast<std::uint8_t>(image.planes.size());
  for (std::size_t i = 0; i < image.planes.size(); ++i) {
    auto& component = job.component[i];
    component.h = static_cast<std::uint8_t>(grey ? 1 : image.planes[i].h);
    component.v = static_cast<std::uint8_t>(grey ? 1 : image.planes[i].v);
    component.quant = static_cast<std::uint16_t>(quants_.size() / 64);
    job.blocks_in_mcu = static_cast<std::uint8_t>(job.blocks_in_mcu + component.h * component.v);
    quants_.insert(quants_.end(), image.planes[i].quant.begin(), image.planes[i].quant.end());
  }
  put_cut(cut, {image.width, image.height}, job);
  job.tensor_width = static_cast<std::uint16_t>(recipe_.size.width);
  job.tensor_height = static_cast<std::uint16_t>(recipe_.size.height);
  job.filter = recipe_.filter;
  job.column_weights = job.row_weights = cuda::kComputed;
  if (!cuda::is_computed(recipe_.filter)) {
    const kernels::Size to = resized_size(recipe_, cut), size = recipe_.size;
    const auto across = cuda::append_weight_table(
        {kernels::Axis::kColumns, 3, cut.crop.width, to.width, cut.left, size.width, recipe_.filter}, weights_);
    const auto down = cuda::append_weight_table(
        {kernels::Axis::kRows, 1, cut.crop.height, to.height, cut.top, size.height, recipe_.filter}, weights_);
    const bool swaps = kernels::swaps_sides(cut.orientation);
    job.column_weights = swaps ? down : across;
    job.row_weights = swaps ? across : down;
  }
  return job;
}

void TokenBatch::append_block(const JpegBlock& block, const cuda::ImageJob& job) {
  cuda::BlockEntry& entry = blocks_.emplace_back();
  entry.first_token = static_cast<std::uint32_t>(tokens_.size() - job.first_token);
  entry.dc = block[0];
  int run = 0;
  for (int k = 1; k < 64; ++k) {
    const int value = block[static_cast<std::size_t>(kernels::jpeg::kNatural[static_cast<std::size_t>(k)])];
    if (value == 0) {
      ++run;
      continue;
    }
    for (; run >= 16; run -= 16) tokens_.push_back(cuda::kZeroRun);
    tokens_.push_back(static_cast<cuda::Token>(run << 12 | (value & 0xfff)));
    run = 0;
  }
  entry.tokens = static_cast<std::uint16_t>(tokens_.size() - job.first_token - entry.first_token);
}

void TokenBatch::append_blocks(const JpegCoefficients& image, cuda::ImageJob& job) {
  job.first_block = blocks_.size();
  job.first_token = tokens_.size();
  for (std::size_t row = job.first_mcu_row; row < job.end_mcu_row; ++row) {
    for (std::size_t column = 0; column < job.mcu_columns; ++column) {
      for (std::size_t i = 0; i < image.planes.size(); ++i) {
        const std::size_t h = job.component[i].h, v = job.component[i].v;
        for (std::size_t part = 0; part < h * v; ++part)
          append_block(image.planes[i].blocks[(row * v + part / h) * image.planes[i].across + column * h + part % h],
                       job);
      }
    }
  }
}

std::string_view TokenBatch::add(const JpegCoefficients& image, const TensorCut& cut, int wanted_tiles) {
  cuda::ImageJob job = job_of(image, cut);
  const cuda::Span rows = cuda::needed_mcus(spec_, job, weights_.data()).rows;
  job.first_mcu_row = static_cast<std::uint32_t>(rows.begin);
  job.end_mcu_row = static_cast<std::uint32_t>(rows.end);
  const auto index = static_cast<std::uint32_t>(jobs_.size());
  job.decoded = index;
  const auto refusal = cuda::cut_tiles(spec_, job, weights_.data(), index, wanted_tiles, tiles_);
  if (!refusal.empty()) return refusal;
  append_blocks(image, job);
  job.output = tensors_.size();
  tensors_.resize(tensors_.size() + table_.image_bytes(recipe_.size), kUnwritten);
  jobs_.push_back(job);
  status_.push_back(cuda::Status::kDone);
  return {};
}

void TokenBatch::run(std::uint32_t seed) {
  std::vector<std::uint32_t> values;
  for (int c = 0; c < table_.channels(); ++c)
    values.insert(values.end(), std::begin(table_.plane(c).values), std::end(table_.plane(c).values));
  const cuda::ReconstructArgs args{spec_,          tiles_.data(),   jobs_.data(),  blocks_.data(),  tokens_.data(),
                                   quants_.data(), weights_.data(), values.data(), tensors_.data(), status_.data()};
  cuda::run_grid({static_cast<int>(tiles_.size()), cuda::kTileThreads, seed},
                 [&](cuda::HostBlock& block) { cuda::reconstruct_tile(block, args); });
}

std::vector<std::byte> TokenBatch::tensor(std::size_t image) const {
  const auto* const first = reinterpret_cast<const std::byte*>(tensors_.data() + jobs_[image].output);
  return {first, first + table_.image_bytes(recipe_.size)};
}

std::vector<std::byte> reference_tensor(std::span<const std::byte> file, kernels::Size image,
                                        const cuda::BatchRecipe& recipe, const TensorCut& cut) {
  PixelBuffer buffer;
  const auto decoded = decode_jpeg(request_for(file, image, whole(image)), buffer);
  REQUIRE(decoded);
  const Turned turned(*decoded, cut.orientation);
  const kernels::U8View crop = kernels::U8View(turned.view).crop(cut.crop);
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(recipe.size.width * recipe.size.height * crop.channels));
  const kernels::MutableU8View picture{pixels.data(), recipe.size.width, recipe.size.height, crop.channels,
                                       std::ptrdiff_t{recipe.size.width} * crop.channels};
  kernels::reference::resample({.channels = crop.channels,
                                .source = crop.size(),
                                .target = resized_size(recipe, cut),
                                .window = {cut.left, cut.top, recipe.size.width, recipe.size.height},
                                .filter = recipe.filter,
                                .order = recipe.order},
                               crop, picture);
  std::vector<std::byte> tensor(kernels::StoreTable(recipe.store).image_bytes(recipe.size));
  kernels::reference::store(recipe.store, picture, cut.flip, tensor);
  return tensor;
}

}  // namespace millrace
