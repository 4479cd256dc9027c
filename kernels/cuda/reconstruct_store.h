// Finished pixels to tensor elements.
#pragma once

#include "kernels/cuda/reconstruct_blocks.h"

namespace millrace::kernels::cuda {

MILLRACE_HD constexpr int channels_of(const TensorSpec& spec) {
  return spec.channels == ChannelOrder::kGrey ? 1 : 3;
}

MILLRACE_HD inline void load_store(const TileWork& work, Thread thread) {
  std::uint32_t* const values = work.at<std::uint32_t>(work.shape.store);
  for (int i = thread.index; i < 256 * channels_of(work.args.spec); i += thread.count) values[i] = work.args.store[i];
}

MILLRACE_HD inline void store_element(std::uint8_t* tensor, std::int64_t at, std::uint32_t bits, int bytes) {
  if (bytes == 1) tensor[at] = static_cast<std::uint8_t>(bits);
  if (bytes == 2) store_as(tensor + 2 * at, static_cast<std::uint16_t>(bits));
  if (bytes == 4) store_as(tensor + 4 * at, bits);
}

// Pixel (x, y) of the tensor before flipping.
MILLRACE_HD inline void store_pixel(const TileWork& work, int x, int y, std::uint32_t pixel) {
  const TensorSpec& spec = work.args.spec;
  const int channels = channels_of(spec), column = work.job.flip != 0 ? spec.width - 1 - x : x;
  const std::int64_t place = std::int64_t{y} * spec.width + column, plane = std::int64_t{spec.width} * spec.height;
  for (int c = 0; c < channels; ++c) {
    const int colour = spec.channels == ChannelOrder::kBgr ? 2 - c : c;
    const int value = channels == 1 ? luma_of(pixel) : channel_of(pixel, colour);
    const std::int64_t at = spec.layout == Layout::kNchw ? c * plane + place : place * channels + c;
    store_element(work.args.tensors + work.job.output, at, work.at<std::uint32_t>(work.shape.store)[256 * c + value],
                  spec.element_bytes);
  }
}

}  // namespace millrace::kernels::cuda
