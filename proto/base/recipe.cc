#include "proto/base/recipe.h"

#include "proto/base/resized_size.h"

namespace millrace {
namespace {

struct FixedCrop {
  std::optional<Size> operator()(WholeImage) const { return std::nullopt; }
  std::optional<Size> operator()(const RandomResizedCrop&) const { return std::nullopt; }
  std::optional<Size> operator()(const GridCell&) const { return std::nullopt; }
  std::optional<Size> operator()(const CentreCrop& crop) const {
    if (crop.size.width < 1 || crop.size.height < 1) return std::nullopt;
    return crop.size;
  }
  std::optional<Size> operator()(const BoxCrop& crop) const {
    if (crop.box.width < 1 || crop.box.height < 1) return std::nullopt;
    return Size{static_cast<std::uint32_t>(crop.box.width), static_cast<std::uint32_t>(crop.box.height)};
  }
};

}  // namespace

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
  return fixed_resized_size(recipe);
}

// Nothing where the resize would refuse the crop, which each sample then says.
std::optional<Size> fixed_resized_size(const Recipe& recipe) {
  if (const auto* exact = std::get_if<ExactSize>(&recipe.resize)) return exact->size;
  const std::optional<Size> crop = std::visit(FixedCrop{}, recipe.crop);
  if (!crop || !check_resizable(recipe.resize, *crop)) return std::nullopt;
  return resized_size(recipe.resize, *crop);
}

}  // namespace millrace
