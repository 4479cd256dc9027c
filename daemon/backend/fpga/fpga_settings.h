// What the administrator decides about FPGA cards: the keys backends.fpga and fpga.*. Value.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "daemon/backend/device_host/wanted.h"
#include "daemon/settings/keys.h"
#include "proto/base/bytes.h"

namespace millrace {

struct FpgaSettings {
  Wanted wanted = Wanted::kNo;
  std::vector<std::string> devices;  // places on the bus, or numbers in XRT's order; empty: all
  std::uint32_t lanes = 3;           // batches of a card under way
  Bytes staging = 192_MiB;           // of the host's, for all lanes of a card
  std::chrono::milliseconds hang{10'000};
  std::chrono::milliseconds swap{30'000};
  std::string images;  // the folder of what cards are programmed with; empty: where it is installed
  std::string worker;  // the program that owns a card; empty: where it is installed
};

SettingsPart fpga_settings();

// Host memory that cards take: of those that are named, or that the kernel's driver has, or of one.
Bytes fpga_staging(const FpgaSettings& settings);

}  // namespace millrace
