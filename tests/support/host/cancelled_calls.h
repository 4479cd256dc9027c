// A gRPC connection on which calls are begun and cancelled in the same breath, by HTTP/2 frames of its own: no limit of
// what is open at once sees them (CVE-2023-44487). Thread-bound(its owner).
#pragma once

#include <cstdint>
#include <string>

#include "tests/support/host/http2_connection.h"

namespace millrace {

class CancelledCalls {
 public:
  // `method`: "/package.Service/Method". Not connected where nobody listens.
  CancelledCalls(const std::string& socket, std::string method);

  // Sends some more, and reads what the server says, which may be nothing. false: the connection has ended.
  bool some_more();
  std::uint64_t begun() const { return begun_; }
  const std::string& heard() const { return connection_.heard(); }  // the last of it

 private:
  const std::string method_;
  Http2Connection connection_;
  std::uint32_t next_stream_ = 1;
  std::uint64_t begun_ = 0;
};

}  // namespace millrace
