// Entropy decoding with the instructions that every processor has, and the choice among all.
#include <cstring>

#include "kernels/cpu/jpeg/entropy.h"

#define MILLRACE_JPEG_TARGET

namespace millrace::kernels::jpeg {
namespace {

inline __attribute__((always_inline)) void switch_if(std::uint32_t head, Cursor& cursor) {
  const TableSwitch then = *cursor.then;
  cursor.table = head & HuffmanTable::kSwitch ? then.table : cursor.table;
  cursor.then = head & HuffmanTable::kSwitch ? then.next : cursor.then;
}

// 17: there is no such code.
int code_length(const CanonicalCode& code, std::uint32_t top) {
  int length = 1;
  for (const std::uint32_t limit : code.limit) length += top >= limit;
  return length;
}

#include "kernels/cpu/jpeg/entropy_loop.h"

}  // namespace

const EntropyKernels& scalar_entropy_kernels() {
  return kKernels;
}

const EntropyKernels& entropy_kernels(Target target) {
#if defined(__x86_64__)
  if (target != Target::kScalar) return bmi2_entropy_kernels();
#endif
  static_cast<void>(target);
  return scalar_entropy_kernels();
}

}  // namespace millrace::kernels::jpeg
