// Settings of parts that bring keys of their own (SettingsPart in keys.h): a plain struct each, found by its type, so
// that Settings need not know them. Value.
//
//   settings.groups.of<CpuSettings>().lanes = 4;
#pragma once

#include <any>
#include <map>
#include <typeindex>

namespace millrace {

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

}  // namespace millrace
