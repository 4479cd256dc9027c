// What a backend is called: "cpu", "cuda:0", "fpga:1". Devices.List says the names, requests pin to one, and each
// sample's record has room for one. Constants and a pure function.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace millrace {

inline constexpr std::size_t kBackendNameMost = 11;  // characters: SampleRecord.backend, with its zero
// For errors: "... is not a backend's name, which has " + this.
inline constexpr const char* kBackendNameRule = "1 to 11 of a-z, 0-9, '_', '-' and ':'";

constexpr bool is_backend_name(std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == ':';
  };
  return !name.empty() && name.size() <= kBackendNameMost && std::all_of(name.begin(), name.end(), allowed);
}

}  // namespace millrace
