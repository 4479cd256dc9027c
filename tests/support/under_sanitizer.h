// Whether a sanitizer is linked to this program. Its own sources may be without one while what they test has it: what
// proto/base/sanitized.h says is of one source, this is of the program.
#pragma once

extern "C" {
[[gnu::weak]] void __asan_init();  // NOLINT: the sanitizers' names
[[gnu::weak]] void __tsan_init();  // NOLINT
}

namespace millrace {

inline bool under_sanitizer() {
  return &__asan_init != nullptr || &__tsan_init != nullptr;
}

}  // namespace millrace
