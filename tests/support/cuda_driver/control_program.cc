// millrace_cuda_sim: changes what all processes see of simulated devices, in the file that SIM_CUDA_CONTROL names.
//
//   millrace_cuda_sim lose DEVICE RESULT                          every call answers RESULT from now on; 0: well again
//   millrace_cuda_sim state DEVICE MILLIWATT CELSIUS PERCENT      what NVML says
//   millrace_cuda_sim show DEVICE                                 all of it, and the bytes in use
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tests/support/cuda_driver/control.h"

namespace {

using namespace millrace::sim;

constexpr char kUsage[] =
    "usage: SIM_CUDA_CONTROL=FILE millrace_cuda_sim lose DEVICE RESULT | state DEVICE MILLIWATT CELSIUS PERCENT | show "
    "DEVICE\n";

std::uint32_t count(const char* text) {
  return static_cast<std::uint32_t>(std::strtoul(text, nullptr, 10));
}

void show(int device) {
  const DeviceControl& control = Control::get().device(device);
  std::printf("lost %d, %u mW, %u C, %u %%, %llu bytes in use\n", control.lost.load(), control.milliwatt.load(),
              control.celsius.load(), control.busy_percent.load(),
              static_cast<unsigned long long>(Control::get().used(device)));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view verb = argc > 2 ? argv[1] : "";
  const int device = argc > 2 ? std::atoi(argv[2]) : -1;
  const bool known = (verb == "lose" && argc == 4) || (verb == "state" && argc == 6) || (verb == "show" && argc == 3);
  if (!known || device < 0 || device >= kMostDevices || settings().control.empty()) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  DeviceControl& control = Control::get().device(device);
  if (verb == "lose") control.lost = std::atoi(argv[3]);
  if (verb == "show") show(device);
  if (verb == "state") {
    control.milliwatt = count(argv[3]);
    control.celsius = count(argv[4]);
    control.busy_percent = count(argv[5]);
  }
  return 0;
}
