// A session's gRPC stream, as the session sees it. Thread-bound(control).
#pragma once

#include "proto/base/error.h"

namespace millrace {

class StreamPort {
 public:
  virtual ~StreamPort() = default;

  // Ends the stream with this status. Idempotent. Waits for nothing.
  virtual void finish(const Error& reason) = 0;
};

}  // namespace millrace
