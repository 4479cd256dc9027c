// K1 run by a host. Thread-safe: a plain function.
#pragma once

#include <cstdint>

#include "kernels/cuda/tokenise_args.h"

namespace millrace::kernels::cuda {

// As a launch of so many blocks of so many threads would; their turns are drawn from `seed`.
void tokenise_on_host(const TokeniseArgs& args, int blocks, int threads, std::uint32_t seed);

}  // namespace millrace::kernels::cuda
