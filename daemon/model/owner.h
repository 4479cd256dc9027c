// On whose account something is done or held. Value.
#pragma once

#include "proto/base/ids.h"

namespace millrace {

struct Owner {
  UserId user{};
  SessionId session{};  // 0: none, as of a connection that has no session yet
  friend bool operator==(const Owner&, const Owner&) = default;
};

}  // namespace millrace
