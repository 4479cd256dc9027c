#include "tests/support/host/decoder_processes.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>

namespace millrace {

std::string status_line(pid_t process, const std::string& name) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with(name + ":")) continue;
    const std::size_t begin = line.find_first_not_of(" \t", name.size() + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

std::vector<pid_t> child_processes(pid_t parent, const std::string& program) {
  std::vector<pid_t> found;
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", gone)) {
    const std::string name = entry.path().filename();
    if (!std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isdigit(c) != 0; })) continue;
    const auto process = static_cast<pid_t>(std::stol(name));
    if (status_line(process, "PPid") == std::to_string(parent) &&
        status_line(process, "Name") == program.substr(0, 15))  // as many as the kernel keeps
      found.push_back(process);
  }
  return found;
}

std::vector<pid_t> decoder_processes(pid_t parent) {
  return child_processes(parent, "millrace-decoder");
}

bool is_replaced(pid_t parent, const std::string& name, pid_t before) {
  const std::vector<pid_t> now = child_processes(parent, name);
  return now.size() == 1 && now[0] != before;
}

bool is_shut_in(pid_t process) {
  return status_line(process, "Seccomp") == "2";
}

}  // namespace millrace
