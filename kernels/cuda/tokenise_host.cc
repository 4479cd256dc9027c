#include "kernels/cuda/tokenise_host.h"

#include "kernels/cuda/host_block.h"
#include "kernels/cuda/tokenise.h"

namespace millrace::kernels::cuda {

void tokenise_on_host(const TokeniseArgs& args, int blocks, int threads, std::uint32_t seed) {
  run_grid({.blocks = blocks, .threads = threads, .seed = seed}, [&](HostBlock& block) { tokenise(block, args); });
}

}  // namespace millrace::kernels::cuda
