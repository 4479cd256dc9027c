#include "tests/conformance/backends_under_test.h"

#include "daemon/backend/backend_table.h"
#include "tests/conformance/echo_backend/echo_backend.h"

namespace millrace {

std::vector<BackendUnderTest> backends_under_test() {
  std::vector<BackendUnderTest> rows;
  for (const BackendRow& row : backend_table()) rows.push_back({row, row.name == "fake"});
  rows.push_back({{"echo", echo_settings, wants_echo, make_echo_backends}});
  return rows;
}

}  // namespace millrace
