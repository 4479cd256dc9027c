// Entropy decoding with the instructions that every processor has, and the choice among all.
#include <cstring>

#include "kernels/cpu/jpeg/entropy.h"

#define MILLRACE_JPEG_TARGET

namespace millrace::kernels::jpeg {
namespace {

template <int kAt>
inline std::uint64_t entry_byte(const HuffmanTable* table, std::uint64_t index) {
  return table->entries[index] >> 8 * kAt & 255;
}
inline std::uint64_t entry_first(const HuffmanTable* table, std::uint64_t index) {
  return static_cast<std::uint64_t>(static_cast<std::int8_t>(entry_byte<4>(table, index)));
}
inline std::uint64_t add_rest(std::uint64_t value, const HuffmanTable* table, std::uint64_t index) {
  return value + (table->entries[index] >> 48);
}

inline __attribute__((always_inline)) void switch_if(std::uint64_t end, Cursor& cursor) {
  const TableSwitch then = *cursor.then;
  cursor.table = end != 0 ? then.table : cursor.table;
  cursor.then = end != 0 ? then.next : cursor.then;
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
