#include "tests/support/pictures/test_data.h"
#include "tests/support/skip.h"

#include <cstdlib>
#include <filesystem>

namespace millrace {

std::optional<std::string> test_data(const std::string& name) {
  const char* base = std::getenv("MILLRACE_TEST_DATA");
  if (base == nullptr || *base == '\0') {
    skip_loudly("the images of " + name + ": MILLRACE_TEST_DATA is not set");
    return std::nullopt;
  }
  const std::string folder = std::string(base) + "/" + name;
  if (!std::filesystem::exists(folder)) {
    skip_loudly("the images of " + name + ": there is no " + folder);
    return std::nullopt;
  }
  return std::filesystem::canonical(folder).string();
}

}  // namespace millrace
