// A block of an epoch in blocks, asked of the kernel in one piece when the first of its samples is read: for disks on
// which single reads are dear. Thread-safe.
#pragma once

#include <cstdint>
#include <optional>

#include "daemon/model/files/dataset.h"
#include "proto/base/ids.h"

namespace millrace {

inline constexpr Bytes kMostAskedAhead = 64_MiB;  // of a block

// Where the parts lie of the block of `block_samples` that has `sample`, as far as they are in the sample's file; at
// most kMostAskedAhead. nullopt: the sample is no part, or is alone there, or more than half of that place is not of the
// block. REQUIRES: raw(sample) < dataset.samples(), block_samples > 0.
std::optional<Dataset::Range> place_of_block(const Dataset& dataset, SampleId sample, std::uint32_t block_samples);

// The kernel reads `place` of the file into its cache while others go on. As far as it has room: nothing fails.
void ask_ahead(int fd, const Dataset::Range& place);

}  // namespace millrace
