// A card's memory: its banks and who has what of them.
//
//   bank 0 ├─buffer─┤page├────buffer────┤page┄┄┄┄┄┄┄│ bank 1 ...       offset in the shared memory = address on the card
//
// A page that nobody ever has lies behind each buffer, where a kernel's overrun ends (hls/card/device/apertures.h).
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "hls/card/shim/mapping.h"

namespace millrace::card {

class Buffer;

struct Bank {
  std::uint64_t address, bytes;  // bytes == 0: no unit has it
  bool operator==(const Bank&) const = default;
};

class CardMemory {
 public:
  // nullptr: errno says why.
  static std::shared_ptr<CardMemory> make(const std::vector<Bank>& banks);
  CardMemory(std::vector<Bank> banks, std::unique_ptr<Mapping> mapping)
      : banks_(std::move(banks)), mapping_(std::move(mapping)), used_(banks_.size()) {}

  const std::vector<Bank>& banks() const { return banks_; }
  const Mapping& mapping() const { return *mapping_; }
  bool has_bank(unsigned bank) const { return bank < banks_.size() && banks_[bank].bytes != 0; }

  // An address on a page; nullopt: the bank has no room. REQUIRES: has_bank(bank).
  std::optional<std::uint64_t> place(unsigned bank, std::uint64_t bytes);
  void give_back(unsigned bank, std::uint64_t address, std::uint64_t bytes);

  // Lets calls find the buffer by its addresses as long as it lives.
  void enter(const std::shared_ptr<Buffer>& buffer);
  // The buffer that has this address, or nullptr.
  std::shared_ptr<Buffer> at(std::uint64_t address) const;
  // How many buffers there are.
  std::size_t buffers() const;

 private:
  const std::vector<Bank> banks_;
  const std::unique_ptr<Mapping> mapping_;
  mutable std::mutex mutex_;
  std::vector<std::map<std::uint64_t, std::uint64_t>> used_;  // of each bank: end by begin, with the page behind
  std::map<std::uint64_t, std::weak_ptr<Buffer>> buffers_;    // by address
};

}  // namespace millrace::card
