// Every setting: its name, where it lives, what it may be, what it means. Reading, checking, printing and the example
// file all go through this table. Immutable.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
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
  Bytes (*automatic)();
};

// A folder; as well "auto", which the example file shows as the default.
struct AutomaticFolder {
  Place<std::string> place;
  std::string (*automatic)();
};

// One of a few words, each of which stands for a value.
template <class T>
struct Word {
  std::string_view text;
  T value;
};
template <class T>
struct Choice {
  Place<T> place;
  std::span<const Word<T>> words;
};

// "\"none\", \"auto\" or \"core\"".
template <class T>
std::string words_text(std::span<const Word<T>> words) {
  std::string text;
  for (const Word<T>& word : words) {
    const bool last = &word == &words.back();
    if (!text.empty()) text += last ? " or " : ", ";
    text += '"' + std::string(word.text) + '"';
  }
  return text;
}

using Field = std::variant<Place<std::string>, Place<bool>, Place<std::vector<std::string>>, Place<std::vector<int>>,
                           Number<std::uint32_t>, Number<std::uint64_t>, Number<std::chrono::seconds>,
                           Number<std::chrono::milliseconds>, Number<Bytes>, AutomaticSize, AutomaticFolder,
                           Choice<LogLevel>, Choice<LanePin>, Choice<std::optional<kernels::Target>>>;

struct Key {
  std::string_view name;  // "limits.pixels": table and key
  Field field;
  std::string_view help;

  std::string_view table() const { return name.substr(0, name.find('.')); }
  std::string_view key() const { return name.substr(name.find('.') + 1); }
};

struct KeyGroup {
  std::string_view table;
  std::string_view help;
};

// Keys of a table follow each other, in the order of the groups.
std::span<const Key> key_table();
std::span<const KeyGroup> key_groups();

// A setting of earlier versions. It is passed over with a remark, whatever its value, so that an old file still starts
// a new daemon. Only for settings that changed neither pixels nor rights.
struct GoneKey {
  std::string_view name;
  std::string_view instead;
};
std::span<const GoneKey> gone_keys();

// One thing that is wrong with one setting.
struct Complaint {
  std::string key;
  std::string text;  // "must be at least 1, is -3"
};
std::vector<Complaint> complaints_about(const Settings& settings);

// "must be at least 1, is 0", or nothing when it is within. Sizes are shown with units.
std::string out_of_bounds(std::uint64_t number, std::uint64_t least, std::uint64_t most);
std::string out_of_bounds(Bytes size, Bytes least, Bytes most);

}  // namespace millrace
