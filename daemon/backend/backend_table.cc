#include "daemon/backend/backend_table.h"

#include <algorithm>

#include "daemon/backend/cpu/cpu_backend.h"
#include "daemon/backend/cuda/cuda_backend.h"
#include "daemon/backend/fake/fake_backend.h"
#include "daemon/backend/fpga/fpga_backend.h"

namespace millrace {
namespace {

constexpr BackendRow kTable[] = {
    {"cuda", cuda_settings, wants_cuda, make_cuda_backends,
     cuda_host_memory},  // before the processor, which takes what it leaves
    {"fpga", fpga_settings, wants_fpga, make_fpga_backends, fpga_host_memory},
    {"cpu", cpu_settings, wants_cpu, make_cpu_backends},
    {"fake", fake_settings, wants_fake, make_fake_backends},  // made up, for tests
};

std::vector<Complaint> one_is_wanted(const Settings& settings) {
  const bool wanted =
      std::any_of(std::begin(kTable), std::end(kTable), [&](const BackendRow& row) { return row.wanted(settings); });
  if (wanted) return {};
  return {{"backends.cpu", "must be true: there is no other backend"}};
}

}  // namespace

std::span<const BackendRow> backend_table() {
  return kTable;
}

std::vector<SettingsPart> backend_settings() {
  std::vector<SettingsPart> parts;
  for (const BackendRow& row : kTable) parts.push_back(row.settings());
  parts.push_back({.complaints = one_is_wanted});
  return parts;
}

}  // namespace millrace
