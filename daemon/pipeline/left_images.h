// Why images of a session are not made by the backend that comes first for them: each reason is told once, in the log.
// Thread-bound(control).
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/observe/log.h"
#include "proto/base/ids.h"

namespace millrace {

class LeftImages {
 public:
  // "session 3 leaves images to cpu: cuda:0: the GPU decodes JPEG files alone". `why`: fit for people.
  void tell(SessionId session, std::string_view to, std::string_view why) {
    if (told_.size() == kMostReasons || std::find(told_.begin(), told_.end(), why) != told_.end()) return;
    told_.emplace_back(why);
    log_info("session " + std::to_string(raw(session)) + ": images go to " + std::string(to) + ", for " +
             std::string(why));
  }

 private:
  static constexpr std::size_t kMostReasons = 16;  // of a session
  std::vector<std::string> told_;
};

}  // namespace millrace
