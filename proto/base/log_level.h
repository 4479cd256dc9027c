// How much the daemon tells; shared by its settings and its log. Values.
#pragma once

#include <cstdint>

namespace millrace {

enum class LogLevel : std::uint8_t { kError, kWarning, kInfo, kDebug };  // each shows those before it as well

}  // namespace millrace
