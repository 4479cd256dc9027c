// What MILLRACE_CARD_* in the environment say; hls/card/README.md lists them. Immutable once read, which happens at first
// use; a value that cannot be read ends the process.
#pragma once

#include <cstdarg>
#include <cstdint>
#include <string>

namespace millrace::card {

constexpr unsigned kMostCards = 16;

struct Settings {
  unsigned cards = 1;
  unsigned program_ms = 200;   // that a card takes to be programmed
  std::uint64_t bank_mib = 0;  // of each bank; 0: what the xclbin says
  bool scramble = true;        // new buffers hold 0xC7 on the card
  std::uint64_t copied = 0;    // bytes of a sync that are copied, at most; 0: all
  bool trace = false;          // a line for each call
  std::string faults;          // hls/card/shim/faults.h
  std::string control;         // path of the file that processes share; empty: none
  std::string device_program;  // empty: beside the shim
};

const Settings& settings();

// A line on stderr: what a real driver writes into the kernel's log.
[[gnu::format(printf, 2, 3)]] void complain(unsigned card, const char* format, ...);
// Likewise, where MILLRACE_CARD_TRACE is 1.
[[gnu::format(printf, 2, 3)]] void trace(unsigned card, const char* format, ...);

}  // namespace millrace::card
