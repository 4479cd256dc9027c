// Where the commented settings are that document every key. Thread-safe: plain functions.
#pragma once

#include <string>

namespace millrace {

// Those of the Python wheel that this program lies in, else `installed`.
std::string example_settings(const std::string& installed);

}  // namespace millrace
