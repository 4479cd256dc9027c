// A daemon with simulated FPGA cards, some pictures that are all for them, and epochs whose every sample is looked at.
// Thread-bound(the test).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/support/host/temp_folder.h"
#include "tests/system/support/daemon.h"

namespace millrace {

inline constexpr std::uint32_t kCardImages = 48;

struct CardSpec {
  std::uint32_t cards = 1;
  std::uint32_t side = 60;  // pixels of the smallest picture
  std::string faults;       // see hls/card/README.md
  std::string settings;     // further lines of the [fpga] table
  std::string cache = "memory = 0\n";
  std::string limits{};  // the lines of the [limits] table
  std::string images{};  // the folder of images; empty: the build's
  std::uint32_t program_milliseconds = 20;
  bool ordered = false;  // faults can be ordered, see order_fault() and CardMill::control()
};

struct CardMill {
  explicit CardMill(const CardSpec& spec = {});

  std::vector<pid_t> owners() const;             // processes of the daemon's that have a card
  std::vector<pid_t> cards(pid_t owner) const;   // the cards' own
  Device device(const std::string& name) const;  // throws std::runtime_error: there is none
  std::string control() const { return folder / "control"; }
  bool is_ready() const { return device("fpga:0").ready; }

  TempFolder folder;
  std::vector<std::string> paths;
  Daemon daemon;
};

// What one epoch came to.
struct CardEpoch {
  std::map<std::uint64_t, std::vector<std::byte>> tensors;  // by sample
  std::map<std::string, int> by_backend;
  std::vector<std::string> errors;  // also why it ended early, and of samples that came twice
};

// `backend`: the pin; empty: none. `between`: called after each batch.
CardEpoch run_epoch(const CardMill& mill, const std::string& backend, const std::function<void()>& between = {},
                    CacheUse cache = CacheUse::kTensors);

}  // namespace millrace
