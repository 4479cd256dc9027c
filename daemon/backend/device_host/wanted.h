// Whether devices of a type are to be used, as settings and command lines say it. Values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

#include "daemon/settings/keys.h"

namespace millrace {

enum class Wanted : std::uint8_t { kNo, kAuto, kYes };

inline constexpr Word<Wanted> kWantedWords[] = {{"no", Wanted::kNo}, {"auto", Wanted::kAuto}, {"yes", Wanted::kYes}};

// What such a word means; nullopt: it is none of them.
inline std::optional<Wanted> wanted_of(std::string_view word) {
  const auto found = std::find_if(std::begin(kWantedWords), std::end(kWantedWords),
                                  [&](const Word<Wanted>& one) { return one.text == word; });
  return found == std::end(kWantedWords) ? std::nullopt : std::optional(found->value);
}

}  // namespace millrace
