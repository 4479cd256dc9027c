#include "millrace/recipe.h"

#include "proto/shm/segment_layout.h"

namespace millrace {
inline namespace client {

Bytes dtype_bytes(DType dtype) {
  switch (dtype) {
    case DType::kUint8:
      return {1};
    case DType::kFloat16:
    case DType::kBfloat16:
      return {2};
    case DType::kFloat32:
      return {4};
  }
  return {4};
}

std::string_view dtype_name(DType dtype) {
  switch (dtype) {
    case DType::kUint8:
      return "uint8";
    case DType::kFloat16:
      return "float16";
    case DType::kBfloat16:
      return "bfloat16";
    case DType::kFloat32:
      return "float32";
  }
  return "unknown";
}

std::optional<Size> fixed_size(const Recipe& recipe) {
  if (recipe.centre_crop) return recipe.centre_crop;
  if (const auto* exact = std::get_if<ExactSize>(&recipe.resize)) return exact->size;
  if (!std::holds_alternative<KeepSize>(recipe.resize)) return std::nullopt;
  if (const auto* centre = std::get_if<CentreCrop>(&recipe.crop)) return centre->size;
  if (const auto* box = std::get_if<BoxCrop>(&recipe.crop))
    return Size{static_cast<std::uint32_t>(box->box.width), static_cast<std::uint32_t>(box->box.height)};
  return std::nullopt;
}

std::optional<Bytes> slot_bytes_for(const Recipe& recipe, std::uint32_t samples) {
  const auto size = fixed_size(recipe);
  if (!size) return std::nullopt;
  const std::uint64_t channels = recipe.channels == Channels::kGrey ? 1 : 3;
  const std::uint64_t frames = recipe.patches ? recipe.patches->temporal : 1;
  const Bytes pixels = dtype_bytes(recipe.dtype) * (std::uint64_t{size->width} * size->height * channels * frames);
  return shm::slot_bytes_of_images(pixels, samples);
}

}  // namespace client
}  // namespace millrace
