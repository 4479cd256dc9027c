// A command, as XRT writes it into a buffer of its own, and its end. Values; thread-safe: plain functions.
//
//   word 0   state 0-3 | extra mask words 10-11 | words that follow 12-22 | opcode 23-27 | type 28-31
//   then, for a start: the mask of compute units, extra masks, the register file from its first register on
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "hls/card/shim/buffer.h"
#include "hls/card/shim/client.h"
#include "hls/card/wire.h"

namespace millrace::card {

enum class State : std::uint32_t {
  kQueued = 2,
  kRunning = 3,
  kCompleted = 4,
  kError = 5,
  kAborted = 6,
  kNoResponse = 9
};

// What keeps alive what it works with: the client that submitted it may be gone before it ends.
struct Command {
  std::shared_ptr<Client> client;
  std::shared_ptr<Buffer> packet;
  std::uint32_t units = 0;  // any of them may have it
  std::vector<std::uint32_t> registers;
  std::array<std::shared_ptr<Buffer>, kPointerCount> buffers;  // what the pointers point into; nullptr: nothing
};

enum class Opcode : std::uint32_t { kStart = 0, kAbort = 4, kCopy = 7 };

// What the packet's first word says; the packet is the host's and may say anything.
Opcode opcode_of(const Buffer& packet);
// Reads a start; 0 or a negative errno. REQUIRES: opcode_of() is kStart.
int read_start(const Buffer& packet, const CardMemory& memory, Command& command);
// Of an abort: the handle of the victim's packet. 0: it has none.
std::uint64_t victim_of(const Buffer& packet);

// A copy between buffers on the card, by their handles.
struct Copy {
  unsigned from, to;
  std::uint64_t from_offset, to_offset, bytes;
};
// All zero: the packet is too short.
Copy copy_of(const Buffer& packet);

// The host polls this word: it is stored last, with release.
void set_state(const Buffer& packet, State state);
// Likewise, for the last time, and tells the client.
void finish(const Command& command, State state);

}  // namespace millrace::card
