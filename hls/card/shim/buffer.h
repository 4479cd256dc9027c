// A buffer object: where the host has it and where the card has it. They are apart, and bytes pass from one to the other
// by copy() alone, so that a host program that forgets to sync sees what it would see with a real card.
//
//   kind        host                        card
//   user        the caller's memory         a place in a bank
//   host only,  the card's memory itself    a place in a bank
//   peer
//   card only   none                        a place in a bank
//   command     pages of its own            none
//
// Immutable, but for its bytes; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "hls/card/shim/card_memory.h"

namespace millrace::card {

class Buffer {
 public:
  enum class Direction { kToCard, kFromCard };

  // nullptr: errno says why. `flags` as XRT has them: the bank in the low bits, the kind in the high ones. `user`: the
  // host's memory, or nullptr.
  static std::shared_ptr<Buffer> make(std::shared_ptr<CardMemory> memory, void* user, std::size_t bytes,
                                      unsigned flags);
  // A command's, which has no place on the card. nullptr: errno says why.
  static std::shared_ptr<Buffer> make_command(std::size_t bytes, unsigned flags);
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  std::size_t bytes() const { return bytes_; }
  unsigned flags() const { return flags_; }
  bool is_command() const { return memory_ == nullptr; }
  std::byte* host() const { return host_; }           // nullptr: card only
  std::uint64_t address() const { return address_; }  // 0 for a command's

  // 0 or a negative errno.
  int copy(Direction direction, std::size_t bytes, std::size_t offset) const;
  // Between places on the card.
  int copy_from(const Buffer& other, std::size_t bytes, std::size_t offset, std::size_t other_offset) const;

 private:
  Buffer(std::size_t bytes, unsigned flags) : bytes_(bytes), flags_(flags) {}

  std::byte* on_card() const { return memory_->mapping().at(address_); }
  bool has(std::size_t bytes, std::size_t offset) const { return offset <= bytes_ && bytes <= bytes_ - offset; }
  bool map_pages();

  const std::size_t bytes_;
  const unsigned flags_;
  std::shared_ptr<CardMemory> memory_;
  unsigned bank_ = 0;
  std::uint64_t address_ = 0;
  std::byte* host_ = nullptr;
  bool owns_host_ = false;
};

}  // namespace millrace::card
