#include "tests/conformance/backends_under_test.h"

#include "daemon/backend/backend_table.h"
#include "daemon/backend/cpu/cpu_backend.h"
#include "tests/conformance/echo_backend/echo_backend.h"
#include "tests/support/host/process.h"

namespace millrace {
namespace {

// The libraries' decoders in processes of their own: another way to the same pixels.
Result<std::vector<std::unique_ptr<Backend>>> make_isolated(const Settings& settings, const BackendServices& services) {
  Settings isolated = settings;
  isolated.groups.of<CpuSettings>().isolation = Isolation::kProcess;
  isolated.groups.of<CpuSettings>().decoder = bin_folder() + "/millrace-decoder";
  return make_cpu_backends(isolated, services);
}

}  // namespace

std::vector<BackendUnderTest> backends_under_test() {
  std::vector<BackendUnderTest> rows;
  for (const BackendRow& row : backend_table()) {
    const bool is_cuda = row.name == "cuda", is_fpga = row.name == "fpga";
    rows.push_back({row, row.name == "fake", is_cuda || is_fpga, is_cuda || row.name == "cpu"});
  }
  rows.push_back({{"echo", echo_settings, wants_echo, make_echo_backends}});
  return rows;
}

BackendUnderTest isolated_cpu() {
  return {{"cpu", cpu_settings, wants_cpu, make_isolated}, false, false, true};
}

}  // namespace millrace
