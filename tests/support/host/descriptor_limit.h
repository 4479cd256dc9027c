// Leaves this process, or another, no more than so many descriptors to open, until it goes. Thread-bound(the test).
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <stdexcept>
#include <vector>

namespace millrace {

class DescriptorLimit {
 public:
  // Of a process: none, not even in the place of one that it closes, unless it is one of the standard streams.
  static DescriptorLimit none(pid_t process = 0) { return DescriptorLimit(process, 3); }
  // Of this process: `left`, and in the place of each that it closes another.
  static DescriptorLimit left(std::size_t left) {
    std::vector<int> opened;
    for (std::size_t i = 0; i <= left; ++i) opened.push_back(open("/dev/null", O_RDONLY | O_CLOEXEC));
    const int first_over = opened.back();
    for (const int fd : opened) close(fd);
    if (first_over < 0) throw std::runtime_error("not even now there are so many descriptors");
    return DescriptorLimit(0, static_cast<rlim_t>(first_over));
  }
  ~DescriptorLimit() { prlimit(process_, RLIMIT_NOFILE, &before_, nullptr); }
  DescriptorLimit(const DescriptorLimit&) = delete;
  DescriptorLimit& operator=(const DescriptorLimit&) = delete;

 private:
  DescriptorLimit(pid_t process, rlim_t most) : process_(process) {
    if (prlimit(process, RLIMIT_NOFILE, nullptr, &before_) != 0) throw std::runtime_error("cannot read the limit");
    const rlimit fewer{most, before_.rlim_max};
    if (prlimit(process, RLIMIT_NOFILE, &fewer, nullptr) != 0) throw std::runtime_error("cannot set the limit");
  }

  pid_t process_;
  rlimit before_{};
};

}  // namespace millrace
