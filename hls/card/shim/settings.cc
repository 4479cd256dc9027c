#include "hls/card/shim/settings.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace millrace::card {
namespace {

std::string text(const char* name) {
  const char* const found = std::getenv(name);
  return found == nullptr ? "" : found;
}

std::uint64_t number(const char* name, std::uint64_t otherwise) {
  const std::string found = text(name);
  if (found.empty()) return otherwise;
  char* end = nullptr;
  const std::uint64_t value = std::strtoull(found.c_str(), &end, 0);
  if (*end == '\0') return value;
  std::fprintf(stderr, "simulated cards: %s is no number: %s\n", name, found.c_str());
  std::abort();
}

Settings read() {
  return {.cards = static_cast<unsigned>(std::min<std::uint64_t>(number("MILLRACE_CARDS", 1), kMostCards)),
          .program_ms = static_cast<unsigned>(number("MILLRACE_CARD_PROGRAM_MS", 200)),
          .bank_mib = number("MILLRACE_CARD_BANK_MIB", 0),
          .scramble = number("MILLRACE_CARD_SCRAMBLE", 1) != 0,
          .copied = number("MILLRACE_CARD_COPIED", 0),
          .trace = number("MILLRACE_CARD_TRACE", 0) != 0,
          .faults = text("MILLRACE_CARD_FAULTS"),
          .control = text("MILLRACE_CARD_CONTROL"),
          .device_program = text("MILLRACE_CARD_DEVICE")};
}

void say(unsigned card, const char* format, std::va_list arguments) {
  char line[256];
  std::vsnprintf(line, sizeof line, format, arguments);
  std::fprintf(stderr, "simulated card %u: %s\n", card, line);
}

}  // namespace

const Settings& settings() {
  static const auto* const found = new Settings(read());  // outlives threads at work at the process's end
  return *found;
}

void complain(unsigned card, const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  say(card, format, arguments);
  va_end(arguments);
}

void trace(unsigned card, const char* format, ...) {
  if (!settings().trace) return;
  std::va_list arguments;
  va_start(arguments, format);
  say(card, format, arguments);
  va_end(arguments);
}

}  // namespace millrace::card
