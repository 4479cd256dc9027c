#include "kernels/l3/encoding/encode_tile.h"
#include "kernels/l3/encoding/encode_tile_loop.h"

namespace millrace::kernels::l3 {

void encode_tile_scalar(const SampleView& pixels, Effort effort, std::vector<std::uint8_t>& out) {
  encode_tile_here(pixels, effort, out);
}

}  // namespace millrace::kernels::l3
