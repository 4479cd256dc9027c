// What of a card's memory its kernels can reach: the buffers of the calls so far, by the page. Everything else faults,
// so that a kernel that runs out of its buffers takes its card down instead of changing somebody else's bytes.
//
//   card memory  ░░░░▓▓▓▓░░░░░▓▓░░░░░      ▓ open   ░ no access; the shim leaves a page between buffers
//
// Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <mutex>

#include "hls/card/wire.h"

namespace millrace::card {

class Apertures {
 public:
  // `memory`: `bytes` bytes without access.
  Apertures(std::byte* memory, std::uint64_t bytes) : memory_(memory), bytes_(bytes) {}

  // Opens a buffer; what overlaps it was freed, and is closed. False: it is not in the memory.
  bool open(const Window& window);

 private:
  using Ranges = std::map<std::uint64_t, std::uint64_t>;  // from begin to end

  void close_overlaps(std::uint64_t begin, std::uint64_t end);
  bool protect(std::uint64_t begin, std::uint64_t end, int access);

  std::byte* const memory_;
  const std::uint64_t bytes_;
  std::mutex mutex_;
  Ranges open_;
};

}  // namespace millrace::card
