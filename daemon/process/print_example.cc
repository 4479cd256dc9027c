// Prints config/millrace.toml from the table of keys.
#include <cstdio>

#include "daemon/backend/backend_table.h"
#include "daemon/settings/key_table.h"
#include "daemon/settings/settings.h"

int main() {
  using namespace millrace;
  const std::string text = to_toml(default_settings(), KeyTable(backend_settings()), TomlStyle::kExample);
  return std::fputs(text.c_str(), stdout) < 0 ? 1 : 0;
}
