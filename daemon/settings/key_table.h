// Every setting there is: those of daemon/settings, and those that parts of the daemon bring. Reading, checking,
// printing and the example file all go through this table. Immutable.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "daemon/settings/keys.h"
#include "daemon/settings/settings.h"

namespace millrace {

// What a key is that the table lacks: a mistake, or some other part's, for a program that reads a file which it shares
// with the daemon.
enum class UnknownKeys : bool { kMistakes, kOfOthers };

class KeyTable {
 public:
  // REQUIRES: no two keys of the same name, and a group for each key's table.
  explicit KeyTable(std::span<const SettingsPart> parts, UnknownKeys unknown = UnknownKeys::kMistakes);

  std::span<const Key> keys() const { return keys_; }
  std::span<const KeyGroup> groups() const { return groups_; }
  std::span<const GoneKey> gone() const { return gone_; }

  bool has_others() const { return unknown_ == UnknownKeys::kOfOthers; }

  // Whatever is wrong with settings, wherever they come from.
  std::vector<Complaint> complaints_about(const Settings& settings) const;

 private:
  UnknownKeys unknown_;
  std::vector<Key> keys_;
  std::vector<KeyGroup> groups_;
  std::vector<GoneKey> gone_;
  std::vector<std::vector<Complaint> (*)(const Settings&)> rules_;
};

// As it stands in a settings file: "512 MiB" with its quotes, 30, ["/data"].
std::string value_text(const Key& key, const Settings& settings);
// What `from` says of this key alone.
void copy_value(const Key& key, const Settings& from, Settings& to);

// What bounds do not say of the settings that belong to no part.
std::vector<Complaint> own_complaints(const Settings& settings);

// "must be at least 1, is 0", or nothing when it is within. Sizes are shown with units.
std::string out_of_bounds(std::uint64_t number, std::uint64_t least, std::uint64_t most);
std::string out_of_bounds(Bytes size, Bytes least, Bytes most);

}  // namespace millrace
