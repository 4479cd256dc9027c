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

TEST_CASE("Intel's processors with VBMI decode pieces in vectors, all others in turns", "[jpeg]") {
  const ProcessorRow sapphire_rapids = row_of({Maker::kIntel, 6, 0x8F}, Target::kAvx512);
  const ProcessorRow cascade_lake = row_of({Maker::kIntel, 6, 0x55}, Target::kAvx512Bw);
  const ProcessorRow zen5 = row_of({Maker::kAmd, 26, 2}, Target::kAvx512);

  REQUIRE(sapphire_rapids.way == kVectors);
  REQUIRE(cascade_lake.way == kTurns);
  REQUIRE(zen5.way == kTurns);
}

TEST_CASE("generations of one family are told apart by their models", "[jpeg]") {
  REQUIRE(row_of({Maker::kAmd, 23, 0x31}, Target::kAvx2).name == "AMD Zen 2");
  REQUIRE(row_of({Maker::kAmd, 25, 0x01}, Target::kAvx2).name == "AMD Zen 3");
  REQUIRE(row_of({Maker::kAmd, 25, 0x50}, Target::kAvx2).name == "AMD Zen 3");
  REQUIRE(row_of({Maker::kAmd, 25, 0x11}, Target::kAvx512).name == "AMD Zen 4");
  REQUIRE(row_of({Maker::kAmd, 25, 0xA0}, Target::kAvx512Bw).name == "AMD Zen 4");
}

TEST_CASE("a row says whether its processor was measured", "[jpeg]") {
  REQUIRE(row_of({Maker::kAmd, 25, 0x11}, Target::kAvx512).is_measured);
  REQUIRE(row_of({Maker::kAmd, 26, 2}, Target::kAvx2).is_measured);
  for (const unsigned family : {23U, 25U})
    REQUIRE_FALSE(row_of({Maker::kAmd, family, 0x31}, Target::kAvx2).is_measured);
  REQUIRE_FALSE(row_of({Maker::kIntel, 6, 0x55}, Target::kAvx512Bw).is_measured);
}

TEST_CASE("a processor without a row decodes in turns", "[jpeg]") {
  for (const Processor& unknown : {Processor{Maker::kAmd, 27}, Processor{Maker::kOther, 6}, Processor{}}) {
    const ProcessorRow row = row_of(unknown, Target::kAvx512);
    REQUIRE(row.name == "any processor");
    REQUIRE_FALSE(row.is_measured);
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
