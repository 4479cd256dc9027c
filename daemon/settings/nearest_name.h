// What somebody may have meant by a name that does not exist. Pure function, thread-safe.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace millrace {

// The one of `known` that fewest keystrokes turn `name` into, as a whole or in its part after the last dot; nullopt
// when none is near.
std::optional<std::string_view> nearest_name(std::string_view name, std::span<const std::string_view> known);

}  // namespace millrace
