// Any text as a settings file: it is refused with a reason, or it is settings that are in order and survive being
// printed.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "daemon/settings/settings.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace millrace;
  const Result<Settings> settings = parse_settings({reinterpret_cast<const char*>(data), size}, "fuzz.toml");
  if (!settings) {
    MILLRACE_CHECK(settings.error().code == Code::kInvalid && settings.error().message.starts_with("fuzz.toml:"));
    return 0;
  }
  MILLRACE_CHECK(check_settings(*settings).has_value());
  const std::string printed = to_toml(*settings);
  const Result<Settings> again = parse_settings(printed, "printed.toml");
  MILLRACE_CHECK(again.has_value() && to_toml(*again) == printed);
  return 0;
}
