// What a setting is: its name, where it lives, what it may be, what it means. A part of the daemon that has settings of
// its own describes them with these and hands in a SettingsPart:
//
//   struct EchoSettings {
//     std::uint32_t devices = 1;
//   };
//   const Key kKeys[] = {{"echo.devices", number(in_group<&EchoSettings::devices>, 1, 4), "How many there are."}};
//   const KeyGroup kGroups[] = {{"echo", "The echo backend."}};
//   SettingsPart echo_settings() { return {.keys = kKeys, .groups = kGroups}; }
//
// Values, immutable once made.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "daemon/settings/settings.h"

namespace millrace {

// A setting's place in Settings.
template <class T>
struct Place {
  T& (*in)(Settings&);
  const T& (*in_const)(const Settings&);
};

// A number with its bounds, both included.
template <class T>
struct Number {
  Place<T> place;
  std::uint64_t least;
  std::uint64_t most;
};

// As well "auto", which the example file shows as the default.
struct AutomaticSize {
  Number<Bytes> number;
  Bytes (*automatic)();  // may be kAutomatic
  bool zero_is_automatic = true;
};

// A folder; as well "auto", which the example file shows as the default.
struct AutomaticFolder {
  Place<std::string> place;
  std::string (*automatic)();
};

// One of a few words. Which values they stand for, only choice() below knows.
struct Choice {
  std::vector<std::string_view> words;
  std::function<std::size_t(const Settings&)> chosen;  // a position; words.size(): none of them
  std::function<void(Settings&, std::size_t)> choose;  // REQUIRES: below words.size()
};

using Field = std::variant<Place<std::string>, Place<bool>, Place<std::vector<std::string>>, Place<std::vector<int>>,
                           Number<std::uint32_t>, Number<std::uint64_t>, Number<std::chrono::seconds>,
                           Number<std::chrono::milliseconds>, Number<Bytes>, AutomaticSize, AutomaticFolder, Choice>;

// When what a file says anew counts: once the running daemon has read it again, or from the next start on. A key that is
// kLive is put in force by `put_in_force()` of process/live_settings.h, and by nothing else.
enum class Counts : std::uint8_t { kAtStart, kLive };

struct Key {
  std::string_view name;  // "limits.pixels": table and key
  Field field;
  std::string_view help;
  Counts counts = Counts::kAtStart;

  bool live() const { return counts == Counts::kLive; }

  std::string_view table() const { return name.substr(0, name.find('.')); }
  std::string_view key() const { return name.substr(name.find('.') + 1); }
};

struct KeyGroup {
  std::string_view table;
  std::string_view help;
};

// A setting of earlier versions. It is passed over with a remark, whatever its value, so that an old file still starts
// a new daemon. Only for settings that changed neither pixels nor rights.
struct GoneKey {
  std::string_view name;
  std::string_view instead;
};

// One thing that is wrong with one setting.
struct Complaint {
  std::string key;
  std::string text;  // "must be at least 1, is -3"
};

// What a part brings. Its keys may stand in tables of others. All of it is static.
struct SettingsPart {
  std::span<const Key> keys;
  std::span<const KeyGroup> groups;
  std::span<const GoneKey> gone;
  std::vector<Complaint> (*complaints)(const Settings&) = nullptr;  // what bounds do not say; nullptr: nothing
};

// --- for writing keys ---

// `f`: a generic lambda, from Settings, const or not, to a member of it.
template <class F>
constexpr auto place(F f) {
  using T = std::remove_reference_t<decltype(f(std::declval<Settings&>()))>;
  return Place<T>{f, f};
}

template <class F>
constexpr auto number(F f, std::uint64_t least, std::uint64_t most) {
  using T = std::remove_reference_t<decltype(f(std::declval<Settings&>()))>;
  return Number<T>{place(f), least, most};
}

// A text of a choice, and the value that it stands for.
template <class T>
struct Word {
  std::string_view text;
  T value;
};

template <class F, class T, std::size_t kCount>
Choice choice(F f, const Word<T> (&words)[kCount]) {
  const std::vector<Word<T>> all(std::begin(words), std::end(words));
  Choice choice{.words = {},
                .chosen =
                    [f, all](const Settings& settings) {
                      std::size_t i = 0;
                      while (i < all.size() && all[i].value != f(settings)) ++i;
                      return i;
                    },
                .choose = [f, all](Settings& settings, std::size_t i) { f(settings) = all[i].value; }};
  for (const Word<T>& word : words) choice.words.push_back(word.text);
  return choice;
}

// A member of a part's own struct, for the three above: in_group<&EchoSettings::devices>.
template <class>
struct MemberOf;
template <class T, class Group>
struct MemberOf<T Group::*> {
  using Whole = Group;
};
template <auto kMember>
constexpr auto in_group = [](auto& settings) -> decltype(auto) {
  return (settings.groups.template of<typename MemberOf<decltype(kMember)>::Whole>().*kMember);
};

}  // namespace millrace
