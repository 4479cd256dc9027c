// Prints config/millrace.toml from the table of keys.
#include <cstdio>

#include "daemon/settings/settings.h"

int main() {
  const std::string text = millrace::to_toml(millrace::default_settings(), millrace::TomlStyle::kExample);
  return std::fputs(text.c_str(), stdout) < 0 ? 1 : 0;
}
