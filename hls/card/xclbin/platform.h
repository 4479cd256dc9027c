// The platform that xclbins are made for here: four banks of DDR memory, and a register file for each compute unit.
// Immutable.
#pragma once

#include <cstdint>
#include <string>

#include "hls/table/kernel_table.h"

namespace millrace::card {

inline constexpr char kPlatform[] = "millrace_simulated_card_1_0";
constexpr unsigned kBanks = 4;
constexpr std::uint64_t kBankBytes = std::uint64_t{16} << 30;
constexpr unsigned kMostUnitsOfImage = 8;
constexpr std::uint64_t kFirstUnitAddress = 0x1800000;

// All pointers of a unit are in one bank.
constexpr unsigned bank_of_unit(unsigned unit) {
  return unit % kBanks;
}
constexpr std::uint64_t bank_address(unsigned bank) {
  return bank * kBankBytes;
}
constexpr std::uint64_t unit_address(unsigned unit) {
  return kFirstUnitAddress + unit * std::uint64_t{0x10000};
}
// Counted from 1, as v++ does.
inline std::string unit_name(const hls::Image& image, unsigned unit) {
  return std::string(image.kernel) + "_" + std::to_string(unit + 1);
}

}  // namespace millrace::card
