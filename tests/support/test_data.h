// The folder of real test images, for the tests that can use one and skip without it.
#pragma once

#include <optional>
#include <string>

namespace millrace {

// `name` beneath $MILLRACE_TEST_DATA. Without the variable or the folder: nullopt, and a line on stderr saying that a
// check was skipped.
std::optional<std::string> test_data(const std::string& name);

}  // namespace millrace
