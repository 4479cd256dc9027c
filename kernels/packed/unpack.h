// From groups of a packed image to blocks. All targets give the same blocks for all bytes, damaged or not.
// Thread-safe: plain functions over the caller's memory.
#pragma once

#include <cstdint>

#include "kernels/base/target.h"
#include "kernels/packed/packed_image.h"

namespace millrace::kernels::packed {

struct Unpacker {
  // Blocks first .. first + count - 1 of a group: 64 coefficients each, in zig-zag order, DC as level, all of them
  // written. REQUIRES: the group is a PackedImage's; 0 <= first, 1 <= count, first + count <= group.blocks; `out` is
  // aligned to 64 bytes.
  void (*unpack)(const Group& group, int first, int count, std::int16_t* out);
};

// The fastest for `target`, which REQUIRES that it is_available(). Where a processor lacks what the fastest one takes
// beside the target's own instructions, it is that of the target below.
const Unpacker& unpacker(Target target);
const Unpacker& scalar_unpacker();
#if defined(__x86_64__)
const Unpacker& avx2_unpacker();
const Unpacker& avx512_unpacker();  // REQUIRES: has_unpacking_vectors()
#endif

// Whether this processor has GFNI, AVX-512DQ and AVX-512CD beside what Target::kAvx512 means. All that are known do.
bool has_unpacking_vectors();

}  // namespace millrace::kernels::packed
