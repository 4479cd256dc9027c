// What the administrator decides, typed, checked once, immutable afterwards. The keys are one table (key_table.h), to
// which parts of the daemon bring their own; config/millrace.toml shows every one with its default.
//
//   default_settings() ─┐
//   load_settings(file) ┴─▶ the command line's wishes ─▶ check_settings() ─▶ const
//
// Values; the functions are thread-safe.
#pragma once

#include <any>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <typeindex>
#include <vector>

#include "daemon/model/limits.h"
#include "proto/base/bytes.h"
#include "proto/base/log_level.h"
#include "proto/base/result.h"

namespace millrace {

// Settings of parts that bring keys of their own (SettingsPart in keys.h): a plain struct each, found by its type, so
// that Settings need not know them. Value.
//
//   settings.groups.of<CpuSettings>().lanes = 4;
class SettingGroups {
 public:
  // As it was changed; a default-constructed Group before.
  template <class Group>
  const Group& of() const {
    static const Group kDefault{};
    const auto found = groups_.find(typeid(Group));
    return found == groups_.end() ? kDefault : *std::any_cast<Group>(&found->second);
  }

  // For changing it; good as long as this is.
  template <class Group>
  Group& of() {
    return *std::any_cast<Group>(&groups_.try_emplace(typeid(Group), std::in_place_type<Group>).first->second);
  }

 private:
  std::map<std::type_index, std::any> groups_;
};

class KeyTable;

// Of a size that is found out once all settings are known.
inline constexpr Bytes kAutomatic{~std::uint64_t{0}};

struct Settings {
  // [daemon]
  std::string socket = "/run/millrace/millrace.sock";  // gRPC; the hand-off socket is beside it
  LogLevel log_level = LogLevel::kInfo;
  std::chrono::seconds drain{30};         // after SIGTERM
  std::chrono::milliseconds slow{5'000};  // an image that takes longer to read or to make is told of; 0: none
  std::string state_dir;                  // what is remembered from start to start; empty: nothing

  // [lanes]
  std::uint32_t fetch_threads = 4;

  // [memory]
  Bytes segment_budget = 1_GiB;  // all sessions' shared memory together
  Bytes encoded_in_flight = 64_MiB;
  Bytes decoding = 1_GiB;            // all lanes together, beyond what each keeps
  Bytes requests = 256_MiB;          // what clients ask for, while it is kept
  std::uint32_t user_percent = 100;  // of segments and of requests, for one user

  // [cache]
  Bytes cache_memory = 256_MiB;            // of all that is kept of images; 0: nothing is
  Bytes cache_disk = kAutomatic;           // the same in state_dir; kAutomatic: automatic_cache_disk()
  bool packed = true, tensors = true;      // whether these are kept
  std::chrono::seconds stable_after{120};  // unchanged for so long, a file may be stood in for unread

  // [files]
  std::vector<std::string> roots;  // absolute
  std::string opener = "auto";     // its socket; "auto", "": see opener_in_use()
  bool as_root = false;            // whether it opens for root

  // [access]
  std::vector<std::string> admins;  // see Admins

  // [fair]
  std::vector<std::string> fair_weights;  // as parse_fair_weights() reads them

  // [limits]
  Limits limits;

  SettingGroups groups;  // of the backends: each row's own

  // Warnings for the log: one for each line of the file that has no effect, and one if an opener may not read the file.
  // Not a setting.
  std::vector<std::string> remarks;
};

// The members' defaults, but for five that depend on this host: segment_budget, decoding, requests, cache_memory and state_dir
// have what automatic_segment_budget() and the like return.
Settings default_settings();

// The opener that a daemon with these settings may ask: its socket; kOpenerOnceThere: the usual one, once it is there;
// empty: none. "auto" is none where daemon.socket is not the usual one: the host's opener knows clients by that socket,
// and would take another daemon's for forged.
std::string opener_in_use(const Settings& settings);

// Everything that is wrong at once, a line each: "millrace.toml:12: limits.pixels: must be at least 1, is -3".
// Errors: kInvalid, or that of reading the file.
Result<Settings> load_settings(const std::string& path, const KeyTable& table);
// The same from memory. `name` stands for the file in messages.
Result<Settings> parse_settings(std::string_view toml_untrusted, std::string_view name, const KeyTable& table);

// kInvalid: as load_settings, without file and line.
Result<void> check_settings(const Settings& settings, const KeyTable& table);

// TOML that load_settings reads back as the same. kMarked: with a comment where a change counts without a restart.
// kExample: every line commented out and explained, as in config/millrace.toml.
enum class TomlStyle : std::uint8_t { kPlain, kMarked, kExample };
std::string to_toml(const Settings& settings, const KeyTable& table, TomlStyle style = TomlStyle::kPlain);

// "4 GiB", "500 MB", "4096": a whole number, with or without one of B, kB, MB, GB, TB, KiB, MiB, GiB, TiB. nullopt:
// none of these.
std::optional<Bytes> parse_size(std::string_view text);
std::string size_text(Bytes size);  // read back exactly: "4 GiB", "4097"

// What "auto" means is a part of the memory that clients can have: `memory`, less what the daemon takes itself
// (own_memory(), five eighths at most). segments: half of it, or of `shared` (/dev/shm), if that is less. decoding: a
// quarter, and at least 256 MiB. cache: an eighth, at most 64 GiB. requests: a sixteenth, at least 16 MiB. With
// own_memory() they add up to less than `memory` where that is 3 GiB or more, and 64 MiB more for each lane beyond seven.
struct AutomaticBudgets {
  Bytes segments, decoding, cache, requests;
};
AutomaticBudgets automatic_budgets(Bytes memory, Bytes shared, std::uint32_t lanes);
// Of this host: main memory or the least limit of the control groups that the daemon is in, a lane for each processor.
Bytes automatic_segment_budget();
Bytes automatic_decoding_budget();
Bytes automatic_cache_memory();
Bytes automatic_request_budget();

// What the daemon takes beside the budgets that are parts: its code, threads, buffers of gRPC; what each of `lanes`
// keeps; and `encoded`, the budget of encoded bytes, thrice, for reading may exceed it by nearly twice as much; and for
// each of `readers`, the threads that read, one file as large as may be, which may come in beyond that.
inline constexpr Bytes kDaemonKeeps = 160_MiB, kLaneTakes = 40_MiB;
inline constexpr std::uint64_t kTimesEncoded = 3;
struct Readers {
  std::uint32_t threads = 0;
  Bytes file{0};  // the largest
};
Readers readers_of(const Settings& settings);
Bytes own_memory(std::uint32_t lanes, Bytes encoded, const Readers& readers);
// Main memory, or the least limit of a control group that this process is in.
Bytes memory_of_host();

// What cache.disk = "auto" means: a tenth of what is free on the folder's file system, at most 256 GiB; 0 where there is
// no such folder.
Bytes automatic_cache_disk(const std::string& state_dir);

}  // namespace millrace
