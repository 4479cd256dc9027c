// What `millrace top` shows: figures of two looks at the daemon, as rates, and the causes of waiting. Texts are printable.
// Values.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "millrace/client.h"

namespace millrace::cli {

// One look.
struct TopLook {
  Statistics statistics{};
  std::optional<std::vector<SessionFindings>> findings{};  // none: the daemon is older
  std::vector<Device> devices{};
  std::map<std::uint32_t, std::string> users{};  // names of those that have sessions
  std::chrono::steady_clock::time_point at{};
};

struct TopCause {
  std::string code{};            // in words: "slow disk"
  double share = 0;              // of what the session waited
  std::string text{}, advice{};  // sentences
  double images_per_second = 0;  // without it; 0: not known
  std::vector<std::string> paths{};
};

struct TopSession {
  std::uint64_t id = 0;
  std::int32_t pid = 0;
  std::string name{}, user{}, job{};
  double images_per_second = 0;
  std::optional<double> waited{};  // share of the time; none: the client does not say
  std::string cause{};             // the dearest, in words; empty: none is known
  std::uint32_t slots = 0, slots_free = 0;
  double lanes = 0;  // of the processor, that work for it
  std::uint64_t batches = 0, bad = 0;
  Bytes memory{};
  std::chrono::duration<double> time{};  // that the causes look back over
  std::vector<TopCause> causes{};        // the dearest first
};

struct TopDevice {
  std::string name{};
  bool is_ready = false;
  std::uint32_t lanes = 0;
  double images_per_second = 0;
};

struct TopModel {
  std::string gone{};  // why no daemon answers; empty: one does
  std::string version{};
  std::int32_t pid = 0;
  std::chrono::seconds uptime{};
  bool explains = true;  // false: the daemon is older and finds no causes
  double images_per_second = 0;
  std::vector<TopDevice> devices{};
  Bytes kept_in_memory{}, kept_on_disk{};
  std::optional<double>
      kept_hits{};  // share of images since the daemon's start that were kept; none: nothing was looked for
  Bytes tensors{}, encoded{}, decoding{}, requests{};  // budgets: what is in use
  std::vector<TopSession> sessions{};
};

// Rates are those since `before`; without one, or of another daemon, since the daemon's start and the session's begin.
// Images a second and waiting are those of the findings where there are any, so that they fit the sentences.
TopModel top_model(const TopLook& look, const std::optional<TopLook>& before);

}  // namespace millrace::cli
