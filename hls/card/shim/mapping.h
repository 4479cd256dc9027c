// Shared memory without a name, mapped as long as its owner lives: a card's memory, its units' registers. Sparse: pages
// exist once they are written. Immutable; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "hls/card/shim/descriptor.h"

namespace millrace::card {

class Mapping {
 public:
  // nullptr: errno says why.
  static std::unique_ptr<Mapping> make(const char* name, std::uint64_t bytes);
  Mapping(Descriptor file, std::byte* at, std::uint64_t bytes) : file_(std::move(file)), at_(at), bytes_(bytes) {}
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping();

  int descriptor() const { return file_.get(); }
  std::byte* at(std::uint64_t offset) const { return at_ + offset; }
  std::uint64_t bytes() const { return bytes_; }
  // Gives whole pages back; they read as zeros.
  void forget(std::uint64_t offset, std::uint64_t bytes) const;

 private:
  Descriptor file_;
  std::byte* at_;
  std::uint64_t bytes_;
};

}  // namespace millrace::card
