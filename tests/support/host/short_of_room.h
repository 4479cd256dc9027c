// No file of this process may become longer than so much, shared memory among them: the kernel's own answer where there
// is no room, without filling /dev/shm for everybody. Thread-bound(the test).
#pragma once

#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <csignal>

#include "proto/base/bytes.h"

namespace millrace {

class ShortOfRoom {
 public:
  explicit ShortOfRoom(Bytes most) {
    ::signal(SIGXFSZ, SIG_IGN);
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before_) == 0);
    const rlimit limit{most.count, before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &limit) == 0);
  }
  ~ShortOfRoom() { ::setrlimit(RLIMIT_FSIZE, &before_); }
  ShortOfRoom(const ShortOfRoom&) = delete;
  ShortOfRoom& operator=(const ShortOfRoom&) = delete;

 private:
  rlimit before_{};
};

}  // namespace millrace
