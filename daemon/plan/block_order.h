// The shuffle in blocks, as the Python package draws it, too (millrace/_blocks/order.py), and daemon/doc/adr/0043 defines
// it. Blocks in random order; each window_blocks of them make a window, whose samples are mixed. Pure function.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/model/epoch.h"

namespace millrace {

// The sample at each position. 4 bytes a sample and, while it is drawn, 4 a block. Throws std::bad_alloc as `new` does.
// REQUIRES: shuffled in blocks, samples fit 32 bits.
std::vector<std::uint32_t> shuffled_in_blocks(const EpochOrderSpec& spec);

}  // namespace millrace
