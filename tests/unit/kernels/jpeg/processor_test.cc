// The table of processors: which way to decode each has.
#include <catch2/catch.hpp>

#include "kernels/cpu/jpeg/processor_table.h"

namespace millrace {
namespace {

using kernels::Target;
using kernels::jpeg::DecodingWay;
using kernels::jpeg::Maker;
using kernels::jpeg::Processor;
using kernels::jpeg::ProcessorRow;
using kernels::jpeg::row_of;
using kernels::jpeg::SegmentPath;
using kernels::jpeg::Streams;

constexpr DecodingWay kVectors{Streams::kTwo, SegmentPath::kVectors}, kTurns{Streams::kTwo, SegmentPath::kTurns};

TEST_CASE("Intel's processors decode pieces in vectors with AVX-512, AMD's in turns", "[jpeg]") {
  const ProcessorRow intel = row_of({Maker::kIntel, 6}, Target::kAvx512);
  const ProcessorRow zen4 = row_of({Maker::kAmd, 25}, Target::kAvx512);
  const ProcessorRow zen5 = row_of({Maker::kAmd, 26}, Target::kAvx512);

  REQUIRE(intel.way == kVectors);
  REQUIRE(zen4.way == kTurns);
  REQUIRE(zen5.way == kTurns);
  REQUIRE(zen4.name == "AMD Zen 4");
  REQUIRE_FALSE(intel.is_generic);
  REQUIRE_FALSE(zen5.is_generic);
}

TEST_CASE("a processor without a row has the generic one", "[jpeg]") {
  for (const Processor& unknown : {Processor{Maker::kAmd, 27}, Processor{Maker::kOther, 6}, Processor{}}) {
    const ProcessorRow row = row_of(unknown, Target::kAvx512);
    REQUIRE(row.is_generic);
    REQUIRE(row.way == kTurns);
  }
}

TEST_CASE("no processor is told to use vectors that its target lacks", "[jpeg]") {
  for (const Maker maker : {Maker::kAmd, Maker::kIntel, Maker::kOther}) {
    for (const unsigned family : {0U, 6U, 25U, 26U}) {
      REQUIRE(row_of({maker, family}, Target::kAvx2).way.segments == SegmentPath::kTurns);
      REQUIRE(row_of({maker, family}, Target::kScalar).way.segments == SegmentPath::kTurns);
    }
  }
}

}  // namespace
}  // namespace millrace
