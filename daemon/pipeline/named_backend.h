// A backend as the pipeline gets it. Owner.
#pragma once

#include <memory>
#include <string>

namespace millrace {

class Backend;

struct NamedBackend {
  std::string name;
  std::unique_ptr<Backend> backend;
  bool by_pin_only = false;
};

}  // namespace millrace
