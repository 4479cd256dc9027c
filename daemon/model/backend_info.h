// What a backend is, for people and for the code that chooses one. Value.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "daemon/model/bytes/encoded_image.h"
#include "daemon/model/memory_id.h"

namespace millrace {

struct BackendInfo {
  std::string name;    // "cpu", "cuda:0": the row's, with a number where there may be several; is_backend_name()
  std::string device;  // "AMD EPYC 9R14"
  std::string detail;  // instruction sets, driver
  std::uint32_t lanes = 0;
  std::vector<ImageFormat> formats;
  std::vector<MemoryId> memories;             // a device's, that it writes beside the host's
  std::vector<std::string> instruction_sets;  // of a processor: those that the kernels may use here, the best one last
  std::vector<std::pair<std::string, std::string>> properties;  // how it is set up, for people: name and value
  bool by_pin_only = false;                                     // never chosen unless a request names it
  bool copies_files = false;  // holds a file's bytes a second time while it decodes them: charged with large pictures
};

}  // namespace millrace
