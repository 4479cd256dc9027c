// A gRPC connection on which calls are begun and cancelled in the same breath, by HTTP/2 frames of its own: no limit of
// what is open at once sees them (CVE-2023-44487). Thread-bound(its owner).
#pragma once

#include <cstdint>
#include <string>

#include "proto/base/unique_fd.h"

namespace millrace {

class CancelledCalls {
 public:
  // `method`: "/package.Service/Method". Not connected where nobody listens.
  CancelledCalls(const std::string& socket, std::string method);

  // Sends some more, and reads what the server says, which may be nothing. false: the connection has ended.
  bool some_more();
  std::uint64_t begun() const { return begun_; }
  const std::string& heard() const { return heard_; }  // the last of it

 private:
  bool send_all(const std::string& bytes);
  bool listen_in();

  const std::string method_;
  UniqueFd socket_;
  std::uint32_t next_stream_ = 1;
  std::uint64_t begun_ = 0;
  std::string heard_;
};

}  // namespace millrace
