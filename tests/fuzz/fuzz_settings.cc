// Any text as a settings file: it is refused with a reason, or it is settings that are in order and survive being
// printed.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "daemon/backend/backend_table.h"
#include "daemon/settings/key_table.h"
#include "daemon/settings/settings.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace millrace;
  static const KeyTable keys(backend_settings());
  const Result<Settings> settings = parse_settings({reinterpret_cast<const char*>(data), size}, "fuzz.toml", keys);
  if (!settings) {
    MILLRACE_CHECK(settings.error().code == Code::kInvalid && settings.error().message.starts_with("fuzz.toml:"));
    return 0;
  }
  MILLRACE_CHECK(check_settings(*settings, keys).has_value());
  const std::string printed = to_toml(*settings, keys);
  const Result<Settings> again = parse_settings(printed, "printed.toml", keys);
  MILLRACE_CHECK(again.has_value() && to_toml(*again, keys) == printed);
  return 0;
}
