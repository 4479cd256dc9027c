// The functions that a target supplies for storing. Internal to kernels/cpu. Inputs and outputs never overlap; nothing
// beyond them is touched.
#pragma once

#include <cstdint>

#include "kernels/base/target.h"
#include "kernels/tensor/store_table.h"

namespace millrace::kernels {

struct StoreKernels {
  // `count` RGB pixels to three rows, from the right end where `flip` says so.
  void (*split)(const std::uint8_t* pixels, int count, Flip flip, std::uint8_t* const planes[3]);
  // `count` bytes through the table, to elements of two or four bytes.
  void (*widen16)(const StorePlane& plane, const std::uint8_t* in, int count, std::uint16_t* out);
  void (*widen32)(const StorePlane& plane, const std::uint8_t* in, int count, std::uint32_t* out);
};

const StoreKernels& store_kernels(Target target);

const StoreKernels& scalar_store_kernels();
#if defined(__x86_64__)
const StoreKernels& avx2_store_kernels();
const StoreKernels& avx512bw_store_kernels();
const StoreKernels& avx512_store_kernels();
#endif

}  // namespace millrace::kernels
