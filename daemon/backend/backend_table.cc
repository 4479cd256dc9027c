#include "daemon/backend/backend_table.h"

#include <array>

#include "daemon/backend/cpu/cpu_backend.h"
#include "daemon/backend/fake/fake_backend.h"

namespace millrace {
namespace {

bool always() {
  return true;
}

constexpr std::array kTable = {
    BackendRow{"cpu", always, CpuBackend::create},
    BackendRow{"fake", always,
               FakeBackend::create},  // a device made up for tests; nothing is sent there unless it is asked for
};

}  // namespace

std::span<const BackendRow> backend_table() {
  return kTable;
}

}  // namespace millrace
