// UUIDs of simulated devices: they look as random as NVIDIA's, and are always the same. By a device's index on the host,
// whatever a process sees of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

namespace millrace::sim {

inline std::array<unsigned char, 16> uuid_of(int device) {
  std::array<unsigned char, 16> uuid{};
  for (std::size_t half = 0; half < 2; ++half) {
    std::uint64_t word = (static_cast<std::uint64_t>(device) * 2 + half + 1) * 0x9E3779B97F4A7C15;
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9;
    word = (word ^ word >> 27) * 0x94D049BB133111EB;
    word ^= word >> 31;
    for (std::size_t i = 0; i < 8; ++i) uuid[half * 8 + i] = static_cast<unsigned char>(word >> (56 - 8 * i));
  }
  uuid[6] = static_cast<unsigned char>(0x40 | (uuid[6] & 0x0F));  // version 4
  uuid[8] = static_cast<unsigned char>(0x80 | (uuid[8] & 0x3F));
  return uuid;
}

// As nvidia-smi writes it.
inline std::string uuid_text(int device) {
  std::string text = "GPU";
  const std::array<unsigned char, 16> uuid = uuid_of(device);
  for (std::size_t i = 0; i < uuid.size(); ++i) {
    char hex[4];
    std::snprintf(hex, sizeof(hex), "%s%02x", i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
    text += hex;
  }
  return text;
}

}  // namespace millrace::sim
