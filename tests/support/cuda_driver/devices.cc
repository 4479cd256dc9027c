#include "tests/support/cuda_driver/devices.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/support/cuda_driver/settings.h"
#include "tests/support/cuda_driver/uuid.h"

namespace millrace::sim {
namespace {

constexpr cuda::CUdevice kFirstHandle = 100;

// By its number, or by how its UUID alone begins. Negative: no such device.
int named_device(const std::string& name) {
  char* end = nullptr;
  const long number = std::strtol(name.c_str(), &end, 10);
  if (end != name.c_str()) return *end == '\0' && number < settings().devices ? static_cast<int>(number) : -1;
  int found = -1;
  for (int device = 0; device < settings().devices; ++device) {
    if (name.size() <= 4 || !uuid_text(device).starts_with(name)) continue;
    if (found >= 0) return -1;
    found = device;
  }
  return found;
}

// All, unless the variable is there. What is no device, or comes twice, ends the list.
std::vector<int> read_visible() {
  std::vector<int> visible;
  const char* const variable = std::getenv("CUDA_VISIBLE_DEVICES");
  if (variable == nullptr) {
    for (int device = 0; device < settings().devices; ++device) visible.push_back(device);
    return visible;
  }
  const std::string list = std::string(variable) + ",";
  for (std::size_t begin = 0, end = 0; (end = list.find(',', begin)) != std::string::npos; begin = end + 1) {
    const int device = named_device(list.substr(begin, end - begin));
    if (device < 0 || std::ranges::find(visible, device) != visible.end()) break;
    visible.push_back(device);
  }
  return visible;
}

const std::vector<int>& visible() {
  static const auto* const found = new std::vector<int>(read_visible());
  return *found;
}

}  // namespace

int visible_devices() {
  return static_cast<int>(visible().size());
}

cuda::CUdevice device_at(int ordinal) {
  return ordinal >= 0 && ordinal < visible_devices() ? kFirstHandle + visible()[static_cast<std::size_t>(ordinal)] : -1;
}

int index_of(cuda::CUdevice device) {
  return std::ranges::find(visible(), device - kFirstHandle) != visible().end() ? device - kFirstHandle : -1;
}

}  // namespace millrace::sim
