// What a simulated card's shim, in the host process, and its device process say to each other. Values.
//
//   host process                                             device process, one a card
//   shim ──Start, one at a time──▶ a socket for each unit ──▶ a thread for each unit calls the kernel
//        ◀─────Ready, Done──────── one socket for all ◀───── end of file on it ends the process
//        ═════════ card memory: one sparse file, offset = address on the card ═════════
//        ═════════ register files: kRegisterBytes a unit ══════════════════════════════
//
// Both ends are ours and of one build; sockets keep messages apart.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "hls/card/table_view.h"

namespace millrace::card {

constexpr unsigned kMostUnits = 32;  // compute units of a card: a word of a command's mask
constexpr std::size_t kMostRegisters = hls::kRegisterBytes / sizeof(std::uint32_t);
constexpr std::uint64_t kPage = 4096;

// Descriptors that the device process begins with.
enum DeviceDescriptor : int { kReplies = 3, kMemory, kRegisters, kBitstream, kFirstUnit };

// What goes wrong in the device process on purpose.
enum class Harm : std::uint32_t {
  kNone,
  kCrash,   // the process aborts instead of calling the kernel
  kHang,    // the kernel never ends
  kSlow,    // the kernel begins after `harm_amount` microseconds
  kFlip,    // a bit of the tensors is another one after the kernel; `harm_amount` says which
  kGarble,  // so is one completion's cookie
};

// A buffer on the card.
struct Window {
  std::uint64_t address, bytes;  // bytes == 0: no buffer is there
};

// Sent up to registers[words].
struct Start {
  std::uint64_t sequence;
  Harm harm;
  std::uint32_t harm_amount;
  std::array<Window, kPointerCount> windows;  // the buffers that the pointers point into, in the table's order
  std::uint32_t words;
  std::uint32_t registers[kMostRegisters];
};

enum class Outcome : std::uint32_t {
  kReady,    // the first message: every kernel is there
  kDone,     // the kernel returned
  kRefused,  // it was not called: a pointer's bytes are not all in one buffer
};

struct Done {
  std::uint64_t sequence;
  std::uint32_t unit;
  Outcome outcome;
};

}  // namespace millrace::card
