// Opens names as the user whose credentials the thread has: the kernel decides every step of the way. For one message: what
// it opens of the roots, from "/" down by their names, it holds no longer, so that a root can be unmounted and one that
// was mounted anew is served.
//
// Paths stay beneath the roots: openat2(2) with RESOLVE_BENEATH, and where links are absolute or lead from one root
// into another, a walk by hand (fetch/open/path_walk.h). Thread-bound(its thread).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/fetch/open/opener_message.h"
#include "daemon/fetch/open/path_walk.h"
#include "daemon/fetch/open/root_name.h"
#include "daemon/opener/kerberos_mounts.h"
#include "proto/base/unique_fd.h"

namespace millrace {

class AsCaller {
 public:
  // All of it outlives this.
  AsCaller(const std::vector<RootName>& roots, KerberosMounts& kerberos);

  struct Opened {
    OpenAnswer answer;
    UniqueFd fd;  // if answer.descriptor
  };
  // FIFOs, devices and leased files never make it wait; a file server that does not answer does. Links that lead a long
  // way round are followed for half a second, then they are an error of the name's. What is not readable
  // has the same words whether it exists or not.
  Opened open(std::string_view name_untrusted, OpenerWhat what);

 private:
  class Rules;
  struct Root {
    bool tried = false;
    UniqueFd fd;
    dev_t device = 0;
    std::optional<Error> error;
    bool missing = false;
  };
  struct Place {
    Root* root = nullptr;
    std::string_view rest;
  };

  Result<Place> place_of(std::string_view path);
  Root& root_at(std::size_t index);
  Result<UniqueFd> open_it(std::string_view path, OpenerWhat what);
  Result<UniqueFd> open_walking(std::string_view path, OpenerWhat what);
  Result<void> check_kerberos(dev_t device);
  Result<void> check(int fd, const struct stat& status, OpenerWhat what, dev_t root);

  const std::vector<RootName>& names_;
  KerberosMounts& kerberos_;
  std::vector<Root> roots_;    // as names_
  bool root_missing_ = false;  // of the name at hand
};

}  // namespace millrace
