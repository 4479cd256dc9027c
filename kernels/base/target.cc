#include "kernels/base/target.h"

namespace millrace::kernels {

bool is_available(Target target) {
  if (target == Target::kScalar) return true;
#if defined(__x86_64__)
  static const bool has_avx2 = __builtin_cpu_supports("avx2");
  static const bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                                 __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi") &&
                                 __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("avx512vnni");
  return target == Target::kAvx2 ? has_avx2 : has_avx512;
#else
  return false;
#endif
}

Target best_target() {
  if (is_available(Target::kAvx512)) return Target::kAvx512;
  if (is_available(Target::kAvx2)) return Target::kAvx2;
  return Target::kScalar;
}

std::vector<Target> available_targets() {
  std::vector<Target> targets;
  for (const Target target : {Target::kScalar, Target::kAvx2, Target::kAvx512}) {
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
    case Target::kAvx512:
      return "avx512";
  }
  return "scalar";
}

}  // namespace millrace::kernels
