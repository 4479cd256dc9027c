// Where an opener (daemon/opener) listens that systemd starts; and the word for it, where there need not be one (yet).
// Constants.
#pragma once

#include <string_view>

namespace millrace {

inline constexpr std::string_view kUsualOpener = "/run/millrace-opener/opener.sock";
inline constexpr std::string_view kOpenerOnceThere = "auto";

}  // namespace millrace
