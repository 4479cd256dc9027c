#include "millrace/recipe.h"

#include "proto/shm/segment_layout.h"

namespace millrace {
inline namespace client {

std::optional<Bytes> slot_bytes_for(const Recipe& recipe, std::uint32_t samples) {
  if (!recipe.views.empty()) {
    const std::optional<Bytes> tensors = fixed_tensor_bytes(recipe, samples);
    return tensors ? std::optional(shm::slot_bytes(*tensors, samples)) : std::nullopt;
  }
  const auto size = fixed_size(recipe);
  if (!size) return std::nullopt;
  return shm::slot_bytes_of_images(image_bytes(recipe, *size), samples);
}

}  // namespace client
}  // namespace millrace
