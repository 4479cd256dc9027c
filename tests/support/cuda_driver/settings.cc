#include "tests/support/cuda_driver/settings.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace millrace::sim {
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
  std::fprintf(stderr, "simulated CUDA: %s is no number: %s\n", name, found.c_str());
  std::abort();
}

int whole(const char* name, int otherwise) {
  return static_cast<int>(number(name, static_cast<std::uint64_t>(otherwise)));
}

bool yes(const char* name, bool otherwise) {
  return number(name, otherwise ? 1 : 0) != 0;
}

Settings read() {
  const bool instant = yes("SIM_CUDA_INSTANT", false);
  return {.devices = std::clamp(whole("SIM_CUDA_DEVICES", 1), 0, kMostDevices),
          .vram_bytes = number("SIM_CUDA_VRAM_MIB", 4096) << 20,
          .context_bytes = number("SIM_CUDA_CONTEXT_MIB", 256) << 20,
          .seed = static_cast<std::uint32_t>(number("SIM_CUDA_SEED", 1)),
          .most_delay_us = static_cast<unsigned>(number("SIM_CUDA_DELAY_US", instant ? 0 : 300)),
          .capability = whole("SIM_CUDA_CAPABILITY", 90),
          .driver_version = whole("SIM_CUDA_DRIVER_VERSION", 13000),
          .multiprocessors = whole("SIM_CUDA_MULTIPROCESSORS", 4),
          .kernels_at_once = std::max(whole("SIM_CUDA_KERNELS_AT_ONCE", 2), 1),
          .instant = instant,
          .strict = yes("SIM_CUDA_STRICT", true),
          .races = yes("SIM_CUDA_RACES", !instant),
          .trace = yes("SIM_CUDA_TRACE", false),
          .scramble = yes("SIM_CUDA_SCRAMBLE", true),
          .copied = number("SIM_CUDA_COPIED", UINT64_MAX),
          .durations = text("SIM_CUDA_DURATIONS"),
          .vmm = yes("SIM_CUDA_VMM", true),
          .peers = yes("SIM_CUDA_PEERS", true),
          .read_only_register = yes("SIM_CUDA_READ_ONLY_REGISTER", true),
          .init_result = whole("SIM_CUDA_INIT_RESULT", 0),
          .init_until = text("SIM_CUDA_INIT_UNTIL"),
          .init_ms = static_cast<unsigned>(number("SIM_CUDA_INIT_MS", 0)),
          .faults = text("SIM_CUDA_FAULTS"),
          .control = text("SIM_CUDA_CONTROL")};
}

}  // namespace

const Settings& settings() {
  static const auto* const found = new Settings(read());  // outlives threads at work at the process's end
  return *found;
}

bool strict_handles() {
  return yes("SIM_CUDA_STRICT_HANDLES", true);
}

void complain(const char* what) {
  if (settings().strict) std::fprintf(stderr, "simulated CUDA: %s\n", what);
}

void end_process(const char* who, const char* what) {
  std::fprintf(stderr, "simulated CUDA: %s %s\n", who, what);
  std::abort();
}

}  // namespace millrace::sim
