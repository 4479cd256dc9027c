#include "kernels/base/target.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace millrace::kernels {

#if defined(__x86_64__)
namespace {

// By CPUID, for clang 14 knows no name for it. What the operating system has to do for it it does for AVX2, too.
bool has_f16c() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}

}  // namespace
#endif

bool is_available(Target target) {
  if (target == Target::kScalar) return true;
#if defined(__x86_64__)
  static const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
                               __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma") && has_f16c();
  static const bool has_avx512bw = has_avx2 && __builtin_cpu_supports("avx512f") &&
                                   __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                                   __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512cd");
  static const bool has_avx512 = has_avx512bw && __builtin_cpu_supports("avx512vbmi") &&
                                 __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("avx512vnni");
  if (target == Target::kAvx512) return has_avx512;
  return target == Target::kAvx512Bw ? has_avx512bw : has_avx2;
#else
  return false;
#endif
}

Target best_target() {
  return available_targets().back();
}

std::vector<Target> available_targets() {
  std::vector<Target> targets;
  for (const Target target : kAllTargets) {
    if (is_available(target)) targets.push_back(target);
  }
  return targets;
}

std::string_view name_of(Target target) {
  switch (target) {
    case Target::kScalar:
      return "scalar";
    case Target::kAvx2:
      return "avx2";
    case Target::kAvx512Bw:
      return "avx512bw";
    case Target::kAvx512:
      return "avx512";
  }
  return "scalar";
}

}  // namespace millrace::kernels
