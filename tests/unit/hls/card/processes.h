// The processes that a host program's simulated cards are. Values; thread-safe: plain functions.
#pragma once

#include <sys/types.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace millrace {

inline std::vector<pid_t> processes_of_cards(pid_t host) {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    pid_t pid = 0, parent = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), pid).ptr != name.data() + name.size()) continue;
    std::ifstream file(entry.path() / "stat");
    std::string number, program, state;
    if (file >> number >> program >> state >> parent && parent == host && program.starts_with("(millrace-card"))
      found.push_back(pid);
  }
  return found;
}

}  // namespace millrace
