// In the place of decode_jpeg: completes every image without a look at it, for measuring what is around a card.
#include "hls/decoder/answer.h"

using millrace::hls::Burst;

extern "C" __attribute__((visibility("default"))) void decode_jpeg(
    const Burst* commands, const Burst* encoded, Burst* tensors, Burst* completions, std::uint32_t commands_bytes,
    std::uint32_t encoded_bytes, std::uint32_t tensors_bytes, std::uint32_t completions_bytes, std::uint32_t phase) {
  answer(commands, encoded, tensors, completions, commands_bytes, encoded_bytes, tensors_bytes, completions_bytes,
         phase);
}
