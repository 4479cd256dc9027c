#include "daemon/settings/settings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <type_traits>
#include <utility>

#include "daemon/model/files/usual_opener.h"
#include "daemon/settings/key_table.h"
#include "daemon/settings/state_dir.h"
#include "proto/base/printable.h"

namespace millrace {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t bytes;
};
constexpr std::array<Unit, 9> kUnits{{{"TiB", std::uint64_t{1} << 40},
                                      {"GiB", std::uint64_t{1} << 30},
                                      {"MiB", std::uint64_t{1} << 20},
                                      {"KiB", std::uint64_t{1} << 10},
                                      {"TB", 1'000'000'000'000},
                                      {"GB", 1'000'000'000},
                                      {"MB", 1'000'000},
                                      {"kB", 1'000},
                                      {"B", 1}}};
constexpr std::size_t kBinaryUnits = 4;  // they come first

// A text as TOML's basic string.
std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    constexpr std::string_view kHex = "0123456789ABCDEF";
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (byte < 0x20 || byte == 0x7F) {
      out += {'\\', 'u', '0', '0', kHex[byte >> 4U], kHex[byte & 15U]};
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string toml(const std::string& text) {
  return in_quotes(text);
}
std::string toml(bool value) {
  return value ? "true" : "false";
}
std::string toml(std::uint32_t number) {
  return std::to_string(number);
}
std::string toml(std::uint64_t number) {
  return std::to_string(number);
}
std::string toml(int number) {
  return std::to_string(number);
}
std::string toml(std::chrono::seconds time) {
  return std::to_string(time.count());
}
std::string toml(std::chrono::milliseconds time) {
  return std::to_string(time.count());
}
std::string toml(Bytes size) {
  const std::string text = size_text(size);
  return text.find(' ') == std::string::npos ? text : in_quotes(text);
}
template <class T>
std::string toml(const std::vector<T>& list) {
  std::string text = "[";
  for (const T& one : list) text += (text.size() > 1 ? ", " : "") + toml(one);
  return text + "]";
}

struct ValueText {
  const Settings& settings;
  TomlStyle style;

  template <class T>
  std::string operator()(const Place<T>& place) const {
    return toml(place.in_const(settings));
  }
  template <class T>
  std::string operator()(const Number<T>& number) const {
    return (*this)(number.place);
  }
  std::string operator()(const Choice& choice) const {
    const std::size_t chosen = choice.chosen(settings);
    return chosen < choice.words.size() ? in_quotes(choice.words[chosen]) : "";
  }
  std::string operator()(const AutomaticSize& size) const {
    const bool open = size.number.place.in_const(settings) == kAutomatic;
    return open || style == TomlStyle::kExample ? in_quotes("auto") : (*this)(size.number);
  }
  std::string operator()(const AutomaticFolder& folder) const {
    return style == TomlStyle::kExample ? in_quotes("auto") : (*this)(folder.place);
  }
};

// `text` in comment lines of at most 120 characters.
std::string comment(std::string_view text) {
  constexpr std::size_t kWidth = 118;
  std::string lines;
  while (!text.empty()) {
    const std::size_t end = text.size() <= kWidth ? text.size() : text.rfind(' ', kWidth);
    lines += "# ";
    lines += text.substr(0, end);
    lines += '\n';
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  return lines;
}

constexpr std::string_view kExampleHead =
    "Millrace's settings, with their defaults. A line that begins with # and a name is a setting: take the # away and "
    "change it. "
    "`millraced --config FILE --check-config` says what is wrong with a file, line by line, or prints what it amounts "
    "to. What is marked \"Live.\" can change while the daemon runs, by `millrace admin reload` or SIGHUP; all else "
    "counts from the next start on. Everybody should be able to read the file (mode 0644): the opener reads its roots "
    "here, as a user of its own.";

struct ValueCopy {
  const Settings& from;
  Settings& to;

  template <class T>
  void operator()(const Place<T>& place) const {
    place.in(to) = place.in_const(from);
  }
  template <class T>
  void operator()(const Number<T>& number) const {
    (*this)(number.place);
  }
  void operator()(const Choice& choice) const {
    if (const std::size_t chosen = choice.chosen(from); chosen < choice.words.size()) choice.choose(to, chosen);
  }
  void operator()(const AutomaticSize& size) const { (*this)(size.number); }
  void operator()(const AutomaticFolder& folder) const { (*this)(folder.place); }
};

}  // namespace

Settings default_settings() {
  Settings settings;
  settings.segment_budget = automatic_segment_budget();
  settings.decoding = automatic_decoding_budget();
  settings.requests = automatic_request_budget();
  settings.cache_memory = automatic_cache_memory();
  settings.state_dir = automatic_state_dir();
  return settings;
}

std::string opener_in_use(const Settings& settings) {
  const bool elsewhere = settings.opener == kOpenerOnceThere && settings.socket != Settings{}.socket;
  return elsewhere ? "" : settings.opener;
}

Result<void> check_settings(const Settings& settings, const KeyTable& table) {
  std::string lines;
  for (const Complaint& complaint : table.complaints_about(settings)) {
    if (!lines.empty()) lines += '\n';
    lines += complaint.key + ": " + complaint.text;
  }
  if (lines.empty()) return {};
  return Error{Code::kInvalid, std::move(lines)};
}

std::string to_toml(const Settings& settings, const KeyTable& table, TomlStyle style) {
  const bool example = style == TomlStyle::kExample;
  std::string text = example ? comment(kExampleHead) : "";
  for (const KeyGroup& group : table.groups()) {
    if (!text.empty()) text += '\n';
    if (example) text += comment(group.help);
    text += "[" + std::string(group.table) + "]\n";
    for (const Key& key : table.keys()) {
      if (key.table() != group.table) continue;
      if (example) text += '\n' + comment(std::string(key.help) + (key.live() ? " Live." : "")) + '#';
      text += std::string(key.key()) + " = " + std::visit(ValueText{settings, style}, key.field);
      text += style == TomlStyle::kMarked && key.live() ? "  # live\n" : "\n";
    }
  }
  return text;
}

std::string value_text(const Key& key, const Settings& settings) {
  return std::visit(ValueText{settings, TomlStyle::kPlain}, key.field);
}

void copy_value(const Key& key, const Settings& from, Settings& to) {
  std::visit(ValueCopy{from, to}, key.field);
}

std::optional<Bytes> parse_size(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  while (text.starts_with(' ')) text.remove_prefix(1);
  if (text.empty()) return Bytes{number};
  for (const Unit& unit : kUnits) {
    if (unit.name != text) continue;
    std::uint64_t bytes = 0;
    if (__builtin_mul_overflow(number, unit.bytes, &bytes)) return std::nullopt;
    return Bytes{bytes};
  }
  return std::nullopt;
}

std::string size_text(Bytes size) {
  for (std::size_t i = 0; i < kBinaryUnits && size.count > 0; ++i) {
    const auto& [name, bytes] = kUnits[i];
    if (size.count % bytes == 0) return std::to_string(size.count / bytes) + ' ' + std::string(name);
  }
  return std::to_string(size.count);
}

}  // namespace millrace
