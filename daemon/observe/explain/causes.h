// Why a session's program waits, in words and figures: the one place where that is decided, for the command line, pages
// and programs alike. A pure function of two looks and of what holds for both. daemon/doc/why.md has every code.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/observe/explain/looks.h"
#include "daemon/observe/explain/slow_files.h"
#include "proto/base/bytes.h"

namespace millrace {

// Another user's sessions.
struct OtherUser {
  std::uint32_t uid = 0;
  std::uint32_t weight = 1;
  std::uint32_t sessions = 0;
};

// What holds for the whole time between two looks, as far as anybody knows.
struct Circumstances {
  std::uint32_t lanes = 0;  // of the processor
  std::uint32_t slots = 0, slots_not_ready = 0;
  std::uint64_t files = 0;  // of the session's datasets
  std::uint32_t weight = 1;
  std::uint32_t other_sessions = 0;  // of anybody
  std::vector<OtherUser> others{};   // who have sessions; the one who may have most first
  SlowFiles::Sums reading{}, making{};
  std::string left_because{};         // the last reason why a device left an image to others
  std::optional<std::string> lost{};  // a device: "cuda:0"
  bool has_device = false;
  bool keeps = true;  // what is made of the session's files may be kept
  bool drains = false;
  Bytes cache_memory{}, cache_bytes{};       // the setting; in use
  Bytes encoded_in_flight{}, decoding{};     // the settings
  std::vector<std::string> missing_roots{};  // that are not there
};

struct CauseFigure {
  std::string_view name;  // "disk_bytes_per_second"
  std::string_view unit;  // "bytes", "seconds", "" for plain counts
  double value = 0;
};

struct Cause {
  std::string_view code;  // "slow_disk"
  double share = 0;       // of the time that the program waited
  std::string text{}, advice{};
  double images_per_second = 0;  // that the program would reach without it; 0: not known
  std::vector<CauseFigure> figures{};
  std::vector<std::string> paths{};  // for the session's user and administrators alone
};

struct Explained {
  double seconds = 0;
  double images_per_second = 0;
  double waited = 0;  // share of that time
  bool waits_told = false;
  std::vector<Cause> causes{};  // the dearest first; never empty
};

Explained explain(const SessionLook& then, const SessionLook& now, const DaemonLook& daemon_then,
                  const DaemonLook& daemon_now, const Circumstances& around);

}  // namespace millrace
