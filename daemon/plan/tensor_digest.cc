#include "daemon/plan/tensor_digest.h"

#include <xxhash.h>

#include <cstring>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>

namespace millrace {
namespace {

constexpr std::uint32_t kVersion = 1;  // another one when pixels change

// Appends values one after the other, each in its own fixed number of bytes.
class Text {
 public:
  template <class T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  void add(const T& value) {
    char bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof value);
    text_.append(bytes, sizeof bytes);
  }
  template <class T>
  void add(const std::optional<T>& value) {
    add(value.has_value());
    if (value) add(*value);
  }
  template <class... T>
  void add(const std::variant<T...>& value) {
    add(static_cast<std::uint32_t>(value.index()));
    std::visit([this](const auto& one) { this->add(one); }, value);
  }

  void add(const Size& size) { add_all(size.width, size.height); }
  void add(const Box& box) { add_all(box.left, box.top, box.width, box.height); }
  void add(const WholeImage&) {}
  void add(const CentreCrop& crop) { add(crop.size); }
  void add(const RandomResizedCrop& crop) { add_all(crop.min_scale, crop.max_scale, crop.min_ratio, crop.max_ratio); }
  void add(const BoxCrop& crop) { add(crop.box); }
  void add(const GridCell& cell) { add_all(cell.columns, cell.rows, cell.column, cell.row); }
  void add(const KeepSize&) {}
  void add(const ShorterSide& side) { add_all(side.pixels, side.longest); }
  void add(const LongerSide& side) { add(side.pixels); }
  void add(const ExactSize& exact) { add(exact.size); }
  void add(const SmartResize& smart) { add_all(smart.factor, smart.min_pixels, smart.max_pixels); }
  void add(const TileGrid& grid) { add_all(grid.tile, grid.min_tiles, grid.max_tiles); }
  void add(const BoundedSides& sides) { add_all(sides.shortest, sides.longest); }
  void add(const Normalise& by) {
    for (const float value : by.mean) add(value);
    for (const float value : by.std) add(value);
  }
  void add(const ScaleJitter& jitter) { add_all(jitter.target, jitter.scale.low, jitter.scale.high); }
  void add(const RandomShorterSide& sides) {
    for (const std::uint32_t side : sides.sides) add(side);
    add(sides.longest);
  }
  void add(const Pad& pad) {
    add_all(pad.left, pad.top, pad.right, pad.bottom, pad.to, pad.place, pad.mode);
    for (const std::uint8_t value : pad.fill) add(value);
  }
  void add(const Patches& patches) { add_all(patches.size, patches.merge, patches.temporal); }
  template <class... T>
  void add_all(const T&... values) {
    (add(values), ...);
  }

  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace

std::uint64_t tensor_digest(const Recipe& recipe, const SampleOverrides& overrides, Fidelity fidelity,
                            std::uint32_t max_side, std::uint64_t seed) {
  // Every member: one that is added to Recipe has to be looked at here, or this does not compile.
  const auto& [ignore_orientation, crop, resize, filter, centre_crop, flip_probability, normalise, range, dtype, layout,
               channels, packing, patches, centre_rounding, steps, erasing, crop_place, pad, random_filters, indices,
               views] = recipe;
  const auto& [box, size] = overrides;
  const bool random_crop = std::holds_alternative<RandomResizedCrop>(crop) && !box;
  const bool random_size =
      !size && (std::holds_alternative<ScaleJitter>(resize) || std::holds_alternative<RandomShorterSide>(resize));
  const bool random_place = crop_place == CropPlace::kRandom || (pad && pad->place == CropPlace::kRandom);
  const bool is_drawn = random_crop || random_size || random_place || !random_filters.empty() || flip_probability > 0 ||
                        !steps.empty() || erasing;
  if (is_drawn || !views.empty() || dtype != DType::kUint8) return 0;
  Text text;
  text.add_all(kVersion, ignore_orientation, crop, resize, filter, centre_crop, normalise, range, layout, channels,
               patches, centre_rounding, box, size, fidelity, max_side, crop_place, pad, indices);
  static_cast<void>(packing);  // says where tensors lie
  const std::uint64_t digest = XXH3_64bits_withSeed(text.text().data(), text.text().size(), seed);
  return digest == 0 ? 1 : digest;
}

}  // namespace millrace
