#include "daemon/opener/kerberos_mounts.h"

#include <sys/sysmacros.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>

namespace millrace {
namespace {

constexpr std::chrono::seconds kRemembered{5};

// proc_pid_mountinfo(5): "ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [TAG...] - TYPE SOURCE SUPEROPTIONS".
std::optional<dev_t> kerberos_device(const std::string& line) {
  std::istringstream words(line);
  std::string id, parent, device, word, type, source, options;
  if (!(words >> id >> parent >> device)) return std::nullopt;
  while (words >> word && word != "-") {
  }
  if (!(words >> type >> source >> options) || !type.starts_with("nfs")) return std::nullopt;
  if ((',' + options).find(",sec=krb5") == std::string::npos) return std::nullopt;
  unsigned major_number = 0, minor_number = 0;
  char colon = 0;
  if (!(std::istringstream(device) >> major_number >> colon >> minor_number)) return std::nullopt;
  return makedev(major_number, minor_number);
}

}  // namespace

std::vector<dev_t> kerberos_devices(std::string_view mountinfo) {
  std::vector<dev_t> devices;
  std::istringstream lines{std::string(mountinfo)};
  for (std::string line; std::getline(lines, line);) {
    if (const std::optional<dev_t> device = kerberos_device(line)) devices.push_back(*device);
  }
  return devices;
}

Result<bool> KerberosMounts::has(dev_t device) {
  if (major(device) != 0) return false;
  if (const std::optional<bool> known = remembered(device)) return *known;
  std::ifstream file("/proc/self/mountinfo");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  if (!file.is_open() || file.bad() || text.empty())  // there is a root at least
    return Error{Code::kUnavailable, "the opener cannot read which file systems are mounted"};
  const std::vector<dev_t> devices = kerberos_devices(text);
  const bool found = std::find(devices.begin(), devices.end(), device) != devices.end();
  MutexLock lock(mutex_);
  if (seen_.empty()) looked_ = Clock::now();
  return seen_[device] = found;
}

std::optional<bool> KerberosMounts::remembered(dev_t device) {
  MutexLock lock(mutex_);
  if (Clock::now() - looked_ > kRemembered) seen_.clear();
  const auto seen = seen_.find(device);
  return seen == seen_.end() ? std::nullopt : std::optional(seen->second);
}

}  // namespace millrace
