// Entropy decoding with the instructions that every processor has, and the choice among all.
#include <bit>
#include <cstring>

#include "kernels/cpu/jpeg/entropy/entropy.h"

#define MILLRACE_JPEG_TARGET

namespace millrace::kernels::jpeg {
namespace {

// Fields of an entry.
static_assert(std::endian::native == std::endian::little);
template <EntryField kField>
inline std::uint64_t entry_byte(TableAddress table, std::uint64_t index) {
  return reinterpret_cast<const std::uint8_t*>(table + static_cast<int>(kField))[sizeof(std::uint64_t) * index];
}
inline std::uint64_t entry_first(TableAddress table, std::uint64_t index) {
  return static_cast<std::uint64_t>(static_cast<std::int8_t>(entry_byte<EntryField::kFirst>(table, index)));
}
inline std::uint64_t add_rest(std::uint64_t value, TableAddress table, std::uint64_t index) {
  return value + field_of(table_at(table).entries[index], EntryField::kRest);
}

// Whether the entry ends within the block.
inline bool stays(std::uintptr_t last, TableAddress table, std::uint64_t index) {
  return last % kBlockBytes + entry_byte<EntryField::kReach>(table, index) < kBlockBytes;
}
inline void advance(std::uintptr_t& last, std::uint64_t by, std::uint64_t end) {
  last = (last + by) | end;
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

#include "kernels/cpu/jpeg/entropy/entropy_loop.h"

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
