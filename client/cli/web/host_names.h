// Which names this server may be called by: a page of another name that a browser was led here by gets nothing. Values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace millrace::cli {

class HostNames {
 public:
  // `names`: besides addresses and localhost; case does not count.
  explicit HostNames(std::vector<std::string> names);

  // Of a Host header, with or without a port.
  bool has(std::string_view host_untrusted) const;

 private:
  std::vector<std::string> names_;
};

}  // namespace millrace::cli
