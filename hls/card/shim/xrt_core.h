// The two functions of libxrt_coreutil that a shim calls; Debian installs no header for them.
#pragma once

#include <memory>

struct axlf;

namespace xrt_core {

class device {
 public:
  void register_axlf(const axlf* file);
};

// Makes XRT's own object for an open handle.
std::shared_ptr<device> get_userpf_device(void* handle, unsigned int index);
std::shared_ptr<device> get_userpf_device(void* handle);

}  // namespace xrt_core
