// The instruction sets that the arithmetic is written for. Chosen once at run time, above every inner loop; never by
// compiler flags, so that one binary runs everywhere. All targets give the same bits: tests force each of them.
// Immutable.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace millrace::kernels {

// kAvx2 means AVX2, BMI, BMI2, FMA and F16C together (Haswell and Zen onwards), without what is slow on some of them:
// no pdep, no pext, no gathers. kAvx512Bw means F, BW, VL, DQ and CD beside these (Skylake-X, Cascade Lake and Cooper
// Lake). kAvx512 means VBMI, VBMI2 and VNNI as well (Ice Lake and Zen 4 onwards).
enum class Target : std::uint8_t { kScalar, kAvx2, kAvx512Bw, kAvx512 };

inline constexpr Target kAllTargets[] = {Target::kScalar, Target::kAvx2, Target::kAvx512Bw, Target::kAvx512};

// True when this processor and operating system run `target`. kScalar always.
bool is_available(Target target);

// The fastest available one. The processor is asked once.
Target best_target();

// All available ones, slowest first.
std::vector<Target> available_targets();

std::string_view name_of(Target target);

}  // namespace millrace::kernels
