// The folder of real test images, for the tests that can use one and skip without it.
#pragma once

#include <optional>
#include <string>

namespace millrace {

// `name` beneath $MILLRACE_TEST_DATA. Without the variable or the folder: nullopt, and the check is skipped
// loudly (skip.h).
std::optional<std::string> test_data(const std::string& name);

}  // namespace millrace
