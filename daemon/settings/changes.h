// What a file that is read again says otherwise than what is in force: key by key, as the files spell it. Values and
// pure functions, thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "daemon/settings/key_table.h"
#include "daemon/settings/settings.h"

namespace millrace {

struct SettingChange {
  std::string name;  // "limits.pixels"
  std::string before, now;
};

struct SettingChanges {
  std::vector<SettingChange> live;      // that count at once
  std::vector<SettingChange> at_start;  // that count from the next start on
  std::size_t unchanged = 0;
};
SettingChanges changes(const Settings& in_force, const Settings& wanted, const KeyTable& table);

// `in_force`, with what `wanted` says of the live keys.
Settings with_live(Settings in_force, const Settings& wanted, const KeyTable& table);

}  // namespace millrace
