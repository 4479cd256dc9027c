// What an xclbin says that a card needs to know. An xclbin is a file, and believed in nothing. Value.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hls/card/shim/card_memory.h"

struct axlf;

namespace millrace::card {

using Uuid = std::array<unsigned char, 16>;

struct Program {
  Uuid uuid;
  std::vector<Bank> banks;
  std::vector<std::string> units;        // KERNEL:UNIT, in the order of the bits in a command's mask
  std::span<const std::byte> bitstream;  // of the xclbin
};

// nullopt: it lacks something or contradicts itself; `why` says what.
std::optional<Program> read_program(const axlf& file, const char*& why);

}  // namespace millrace::card
