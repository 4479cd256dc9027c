#include "tests/support/test_data.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace millrace {

std::optional<std::string> test_data(const std::string& name) {
  const char* base = std::getenv("MILLRACE_TEST_DATA");
  if (base == nullptr || *base == '\0') {
    std::fprintf(stderr, "SKIPPED: a check with the images of %s: MILLRACE_TEST_DATA is not set\n", name.c_str());
    return std::nullopt;
  }
  const std::string folder = std::string(base) + "/" + name;
  if (!std::filesystem::exists(folder)) {
    std::fprintf(stderr, "SKIPPED: a check with the images of %s: there is no %s\n", name.c_str(), folder.c_str());
    return std::nullopt;
  }
  return std::filesystem::canonical(folder).string();
}

}  // namespace millrace
