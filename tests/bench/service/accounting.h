// What keeping accounts of costs takes of the control thread, measured with the daemon's own code.
#pragma once

#include <cstdint>

namespace millrace::bench {

// Nanoseconds an image, of batches of so many: what accounts add to the scopes, portions and jobs of a batch.
double accounting_nanoseconds(std::uint32_t batch);

}  // namespace millrace::bench
