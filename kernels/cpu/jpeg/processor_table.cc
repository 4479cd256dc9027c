#include "kernels/cpu/jpeg/processor_table.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace millrace::kernels::jpeg {
namespace {

constexpr unsigned kAnyFamily = 0;

struct Known {
  std::string_view name;
  Maker maker;
  unsigned family;
  Target target;
  DecodingWay way;
};

// Vectors read their tables by gathers, which are slow on AMD's processors: there, on Zen 5, two streams in turns take
// four fifths of the time. Two streams are faster than one on all of them.
constexpr Known kTable[] = {
    {"Intel with AVX-512", Maker::kIntel, kAnyFamily, Target::kAvx512, {Streams::kTwo, SegmentPath::kVectors}},
    {"AMD Zen 4", Maker::kAmd, 25, Target::kAvx512, {Streams::kTwo, SegmentPath::kTurns}},
    {"AMD Zen 5", Maker::kAmd, 26, Target::kAvx512, {Streams::kTwo, SegmentPath::kTurns}},
};
constexpr ProcessorRow kGeneric{"any processor", {Streams::kTwo, SegmentPath::kTurns}, true};

Processor ask() {
  Processor found;
#if defined(__x86_64__)
  unsigned version = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &version, &b, &c, &d) == 0) return found;
  found.family = (version >> 8U) & 0xFU;
  if (found.family == 0xFU) found.family += (version >> 20U) & 0xFFU;
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
    const bool family = row.family == kAnyFamily || row.family == processor.family;
    if (row.maker == processor.maker && family && row.target == target) return {row.name, row.way};
  }
  return kGeneric;
}

}  // namespace millrace::kernels::jpeg
