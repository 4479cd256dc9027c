// Which way to decode JPEG is the fastest on which processor: the one table, processor_table.cc. Pixels do not depend
// on it. A processor without a row has the last one, which is never wrong by much; its own row is a line more.
// Immutable.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/cpu/jpeg/scan.h"
#include "kernels/cpu/jpeg/segments.h"

namespace millrace::kernels::jpeg {

enum class Maker : std::uint8_t { kAmd, kIntel, kOther };

struct Processor {
  Maker maker = Maker::kOther;
  unsigned family = 0, model = 0;  // as CPUID counts, with their extended parts
};

// The one that this runs on, asked once.
const Processor& this_processor();

struct DecodingWay {
  Streams streams = Streams::kTwo;
  SegmentPath segments = SegmentPath::kTurns;

  friend bool operator==(const DecodingWay&, const DecodingWay&) = default;
};

struct ProcessorRow {
  std::string_view name;  // "AMD Zen 5"; for people
  DecodingWay way;
  bool is_measured = false;  // on such a processor; else the way is that of its kin
};

// The row for `processor` when it runs `target`. Its way is one that `target` has.
ProcessorRow row_of(const Processor& processor, Target target);
inline DecodingWay usual_way(Target target) {
  return row_of(this_processor(), target).way;
}

}  // namespace millrace::kernels::jpeg
