#include "daemon/settings/changes.h"

#include <utility>

namespace millrace {

SettingChanges changes(const Settings& in_force, const Settings& wanted, const KeyTable& table) {
  SettingChanges found;
  for (const Key& key : table.keys()) {
    SettingChange change{std::string(key.name), value_text(key, in_force), value_text(key, wanted)};
    if (change.before == change.now) {
      ++found.unchanged;
    } else {
      (key.live() ? found.live : found.at_start).push_back(std::move(change));
    }
  }
  return found;
}

Settings with_live(Settings in_force, const Settings& wanted, const KeyTable& table) {
  for (const Key& key : table.keys()) {
    if (key.live()) copy_value(key, wanted, in_force);
  }
  return in_force;
}

}  // namespace millrace
