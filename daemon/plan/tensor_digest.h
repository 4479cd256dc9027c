// What decides a tensor's bytes beside the contents of the image's file, as one number. Pure function, thread-safe.
#pragma once

#include <cstdint>

#include "daemon/model/batch_request.h"

namespace millrace {

// The same for requests that make the same tensor of every image; else another one, but for a chance of one in 2^64 that
// nobody can raise who does not know the seed. Never 0 but where chance decides the bytes too (a random crop or flip), or
// they are more than 8 bits an element, which are kept no better than made. `max_side`: as for draw_geometry().
std::uint64_t tensor_digest(const Recipe& recipe, const SampleOverrides& overrides, Fidelity fidelity,
                            std::uint32_t max_side, std::uint64_t seed);

}  // namespace millrace
