#include "kernels/cpu/jpeg/processor_table.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace millrace::kernels::jpeg {
namespace {

// Models of a family, as CPUID counts them.
struct Models {
  unsigned first = 0, last = ~0U;
};

struct Known {
  std::string_view name;
  Maker maker;
  unsigned family;
  Models models;
  Target least;  // the row is for this target and those with more instructions
  DecodingWay way;
  bool is_measured = true;
};

// The first row that fits counts. Vectors read their tables by gathers. These are slow on AMD's processors: there, on
// Zen 5, two streams in turns take four fifths of the time. On Intel's before Sapphire Rapids they are slow since the
// microcode against Downfall (CVE-2022-40982). Two streams are faster than one wherever that was measured.
constexpr DecodingWay kTurns{Streams::kTwo, SegmentPath::kTurns}, kVectors{Streams::kTwo, SegmentPath::kVectors};
constexpr Known kTable[] = {
    {"Intel Skylake-X, Cascade Lake or Cooper Lake", Maker::kIntel, 6, {0x55, 0x55}, Target::kAvx2, kTurns, false},
    {"Intel with AVX-512 and VBMI", Maker::kIntel, 6, {}, Target::kAvx512, kVectors},
    {"AMD Zen 2", Maker::kAmd, 23, {0x30, 0xFF}, Target::kAvx2, kTurns, false},
    {"AMD Zen 4", Maker::kAmd, 25, {0x10, 0x1F}, Target::kAvx2, kTurns},
    {"AMD Zen 4", Maker::kAmd, 25, {0x60, 0xFF}, Target::kAvx2, kTurns},
    {"AMD Zen 3", Maker::kAmd, 25, {}, Target::kAvx2, kTurns, false},
    {"AMD Zen 5", Maker::kAmd, 26, {}, Target::kAvx2, kTurns},
};
constexpr ProcessorRow kAnyProcessor{"any processor", kTurns, false};

Processor ask() {
  Processor found;
#if defined(__x86_64__)
  unsigned version = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &version, &b, &c, &d) == 0) return found;
  found.family = (version >> 8U) & 0xFU;
  if (found.family == 0xFU) found.family += (version >> 20U) & 0xFFU;
  found.model = (version >> 4U & 0xFU) | (version >> 12U & 0xF0U);
  if (__builtin_cpu_is("intel")) found.maker = Maker::kIntel;
  if (__builtin_cpu_is("amd")) found.maker = Maker::kAmd;
#endif
  return found;
}

}  // namespace

const Processor& this_processor() {
  static const Processor the_one = ask();
  return the_one;
}

ProcessorRow row_of(const Processor& processor, Target target) {
  for (const Known& row : kTable) {
    const bool is_model = processor.model >= row.models.first && processor.model <= row.models.last;
    if (row.maker == processor.maker && row.family == processor.family && is_model && target >= row.least)
      return {row.name, row.way, row.is_measured};
  }
  return kAnyProcessor;
}

}  // namespace millrace::kernels::jpeg
