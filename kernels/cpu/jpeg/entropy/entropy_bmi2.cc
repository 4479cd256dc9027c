// Entropy decoding with BMI2: shifts by any register that leave the flags alone.
#include <cstddef>
#include <cstring>

#include "kernels/cpu/jpeg/entropy/entropy.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define MILLRACE_JPEG_TARGET __attribute__((target("avx2,bmi,bmi2,popcnt")))

namespace millrace::kernels::jpeg {
namespace {

// For the compiler, which must know what is read.
using EntryBytes = char[sizeof(HuffmanTable::entries)];
inline __attribute__((always_inline)) const EntryBytes& entries_at(TableAddress table) {
  return *reinterpret_cast<const EntryBytes*>(table);
}

// Fields of an entry. The address is left to each load: a compiler would add it up before, which takes a cycle of the
// few that a look-up waits for the one before it.
template <EntryField kField>
MILLRACE_JPEG_TARGET inline __attribute__((always_inline)) std::uint64_t entry_byte(TableAddress table,
                                                                                    std::uint64_t index) {
  std::uint64_t value;
  asm("movzbl %c[at](%[table], %[index], 8), %k[value]"
      : [value] "=r"(value)
      : [table] "r"(table), [index] "r"(index), [at] "i"(static_cast<int>(kField)), "m"(entries_at(table)));
  return value;
}
MILLRACE_JPEG_TARGET inline __attribute__((always_inline)) std::uint64_t entry_first(TableAddress table,
                                                                                     std::uint64_t index) {
  std::uint64_t value;
  asm("movsbl %c[at](%[table], %[index], 8), %k[value]"
      : [value] "=r"(value)
      : [table] "r"(table), [index] "r"(index), [at] "i"(static_cast<int>(EntryField::kFirst)), "m"(entries_at(table)));
  return value;
}
// In the low 16 bits.
MILLRACE_JPEG_TARGET inline __attribute__((always_inline)) std::uint64_t add_rest(std::uint64_t value,
                                                                                  TableAddress table,
                                                                                  std::uint64_t index) {
  asm("addw %c[at](%[table], %[index], 8), %w[value]"
      : [value] "+r"(value)
      : [table] "r"(table), [index] "r"(index), [at] "i"(static_cast<int>(EntryField::kRest)), "m"(entries_at(table))
      : "cc");
  return value;
}
static_assert(offsetof(HuffmanTable, entries) == 0);

// Whether the entry ends within the block. It reaches as far as one block at most, so it crosses one block's end or
// none. Bit 7 of the address changes where it crosses one, and a byte's sign tells.
MILLRACE_JPEG_TARGET inline __attribute__((always_inline)) bool stays(std::uintptr_t last, TableAddress table,
                                                                      std::uint64_t index) {
  static_assert(kBlockBytes == 128 && HuffmanTable::kLeave <= kBlockBytes);
  bool crosses;
  auto reached = static_cast<std::uint32_t>(last);
  asm("addb %c[at](%[table], %[index], 8), %b[reached]\n\txorb %b[last], %b[reached]"
      : [reached] "+&r"(reached), "=@ccs"(crosses)
      : [last] "r"(last), [table] "r"(table), [index] "r"(index), [at] "i"(static_cast<int>(EntryField::kReach)),
        "m"(entries_at(table))
      : "cc");
  return !crosses;
}
// In its own register: a compiler would take another one, and move it back.
MILLRACE_JPEG_TARGET inline __attribute__((always_inline)) void advance(std::uintptr_t& last, std::uint64_t by,
                                                                        std::uint64_t end) {
  asm("add %[by], %[last]\n\tor %[end], %[last]" : [last] "+r"(last) : [by] "r"(by), [end] "r"(end) : "cc");
}

// The other table follows where `end` is not 0. Compilers would make a branch of it.
MILLRACE_JPEG_TARGET inline __attribute__((always_inline)) void switch_if(std::uint64_t end, Cursor& cursor) {
  asm("test %k[end], %k[end]\n\tcmovnz %c[table_at](%[then]), %[table]\n\tcmovnz %c[next_at](%[then]), %[then]"
      : [table] "+r"(cursor.table), [then] "+r"(cursor.then)
      : [end] "r"(end), [table_at] "i"(offsetof(TableSwitch, table)), [next_at] "i"(offsetof(TableSwitch, next))
      : "cc", "memory");
}

// 17: there is no such code.
MILLRACE_JPEG_TARGET inline __attribute__((always_inline)) int code_length(const CanonicalCode& code,
                                                                           std::uint32_t top) {
  const __m256i beyond = _mm256_set1_epi32(static_cast<int>(top + 1));
  const auto* const limits = reinterpret_cast<const __m256i*>(code.limit.data());
  const __m256i low = _mm256_cmpgt_epi32(beyond, _mm256_loadu_si256(limits));
  const __m256i high = _mm256_cmpgt_epi32(beyond, _mm256_loadu_si256(limits + 1));
  const int both = _mm256_movemask_epi8(_mm256_packs_epi32(low, high));
  return 1 + __builtin_popcount(static_cast<unsigned>(both)) / 2;
}

#include "kernels/cpu/jpeg/entropy/entropy_loop.h"

}  // namespace

const EntropyKernels& bmi2_entropy_kernels() {
  return kKernels;
}

}  // namespace millrace::kernels::jpeg

#endif  // __x86_64__
