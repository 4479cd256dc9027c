// What a card looks at before it begins: whether the batch is one, and whether a descriptor and the head of its tables
// are sound and fit the buffers. All of it is hostile. Thread-safe: plain functions.
#pragma once

#include "hls/base/memory.h"
#include "hls/decoder/job.h"

namespace millrace {
namespace hls {

struct BatchHead {
  std::uint32_t images;  // 0: no batch, or no room for its completions; nothing can be said then
  bool is_sound;         // false: every image of it is kBadDescriptor
  std::uint8_t channels, element_bytes, interleaved;
  std::uint8_t colour[3];
};

BatchHead read_batch(const ReadPort& commands, std::uint32_t completions_bytes);

// Bytes of the buffers that descriptors speak of.
struct Buffers {
  ReadPort commands, encoded;
  std::uint32_t tensors_bytes;
};

// kDone: it can begin, and `job` is all of it. `makes`: what this kernel takes. The head of a JPEG's tables is looked at,
// and that of a packed image (which is kDamaged where it is none).
Reason read_job(const Buffers& buffers, const BatchHead& batch, std::uint32_t index, Source makes, Job& job);

}  // namespace hls
}  // namespace millrace
