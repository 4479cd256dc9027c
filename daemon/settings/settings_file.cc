// Settings from TOML. Everything that toml++ knows stays in here.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <string>
#include <utility>

#include "daemon/settings/key_table.h"
#include "daemon/settings/nearest_name.h"
#include "proto/base/printable.h"
#include "proto/base/unique_fd.h"

#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

namespace millrace {
namespace {

constexpr std::size_t kLargestFile = (1_MiB).count;

using Line = std::uint32_t;

std::string_view kind_of(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::string:
      return "text";
    case toml::node_type::integer:
      return "a whole number";
    case toml::node_type::floating_point:
      return "a number with a fraction";
    case toml::node_type::boolean:
      return "true or false";
    case toml::node_type::array:
      return "a list";
    case toml::node_type::table:
      return "a table";
    default:
      return "a date or time";
  }
}

std::string wrong_kind(std::string_view wanted, const toml::node& node) {
  return "must be " + std::string(wanted) + ", is " + std::string(kind_of(node));
}

// Puts one value where it belongs, or says what is wrong with it.
struct ValueReader {
  const toml::node& node;
  Settings& settings;

  std::string operator()(const Place<std::string>& place) const {
    if (!node.is_string()) return wrong_kind("text in quotes", node);
    place.in(settings) = node.as_string()->get();
    return {};
  }

  std::string operator()(const Place<bool>& place) const {
    if (!node.is_boolean()) return wrong_kind("true or false", node);
    place.in(settings) = node.as_boolean()->get();
    return {};
  }

  std::string operator()(const Place<LogLevel>& place) const {
    constexpr std::string_view kWanted = "\"error\", \"warning\", \"info\" or \"debug\"";
    if (!node.is_string()) return wrong_kind(kWanted, node);
    const std::optional<LogLevel> level = parse_log_level(node.as_string()->get());
    if (!level) return "must be " + std::string(kWanted) + ", is \"" + printable(node.as_string()->get()) + '"';
    place.in(settings) = *level;
    return {};
  }

  std::string operator()(const Place<std::vector<std::string>>& place) const {
    const toml::array* const list = node.as_array();
    if (list == nullptr) return wrong_kind("a list of texts in quotes", node);
    place.in(settings).clear();
    for (const toml::node& one : *list) {
      if (!one.is_string()) return "must be a list of texts in quotes, has in it " + std::string(kind_of(one));
      place.in(settings).push_back(one.as_string()->get());
    }
    return {};
  }

  std::string operator()(const Place<std::vector<int>>& place) const {
    const toml::array* const list = node.as_array();
    if (list == nullptr) return wrong_kind("a list of whole numbers", node);
    place.in(settings).clear();
    for (const toml::node& one : *list) {
      if (!one.is_integer()) return "must be a list of whole numbers, has in it " + std::string(kind_of(one));
      const std::int64_t number = one.as_integer()->get();
      // Whatever no int holds is as wrong as -1, and complaints_about() says so with this number.
      place.in(settings).push_back(std::in_range<int>(number) ? static_cast<int>(number) : -1);
    }
    return {};
  }

  template <class T>
  std::string operator()(const Number<T>& number) const {
    if (!node.is_integer()) return wrong_kind("a whole number", node);
    const std::int64_t is = node.as_integer()->get();
    if (is < 0) return "must be at least " + std::to_string(number.least) + ", is " + std::to_string(is);
    std::string complaint = out_of_bounds(static_cast<std::uint64_t>(is), number.least, number.most);
    if (complaint.empty()) number.place.in(settings) = T(is);
    return complaint;
  }

  std::string operator()(const Number<Bytes>& number) const {
    constexpr std::string_view kWanted = "bytes, or text like \"512 MiB\" or \"2 GB\"";
    std::optional<Bytes> size;
    if (node.is_string()) {
      size = parse_size(node.as_string()->get());
      if (!size) return "must be " + std::string(kWanted) + ", is \"" + printable(node.as_string()->get()) + '"';
    } else if (node.is_integer()) {
      const std::int64_t is = node.as_integer()->get();
      if (is < 0) return "must be at least " + size_text({number.least}) + ", is " + std::to_string(is);
      size = Bytes{static_cast<std::uint64_t>(is)};
    } else {
      return wrong_kind(kWanted, node);
    }
    std::string complaint = out_of_bounds(*size, Bytes{number.least}, Bytes{number.most});
    if (complaint.empty()) number.place.in(settings) = *size;
    return complaint;
  }

  std::string operator()(const AutomaticSize& size) const {
    const bool automatic =
        (node.is_string() && node.as_string()->get() == "auto") || (node.is_integer() && node.as_integer()->get() == 0);
    if (!automatic) return (*this)(size.number);
    size.number.place.in(settings) = size.automatic();
    return {};
  }
};

// Reads every key of the document, gathering what is wrong.
class Reading {
 public:
  explicit Reading(std::string_view name) : name_(name), settings_(default_settings()) {}

  Result<Settings> finish(const toml::table& document) {
    for (const auto& [name, node] : document) read_group(name.str(), node);
    for (const Complaint& complaint : complaints_about(settings_)) {
      if (!bad_.contains(complaint.key)) complain(line_of(complaint.key), complaint.key, complaint.text);
    }
    if (complaints_.empty()) return std::move(settings_);
    std::string lines;
    for (const auto& [line, text] : complaints_) lines += (lines.empty() ? "" : "\n") + text;
    return Error{Code::kInvalid, std::move(lines)};
  }

 private:
  void read_group(std::string_view name, const toml::node& node) {
    const Line line = node.source().begin.line;
    const auto groups = key_groups();
    const bool known =
        std::any_of(groups.begin(), groups.end(), [&](const KeyGroup& group) { return group.table == name; });
    if (!known) return complain_of_unknown(line, name, node.is_table());
    const toml::table* const table = node.as_table();
    if (table == nullptr) return complain(line, name, wrong_kind("a table, [" + std::string(name) + "]", node));
    for (const auto& [key, value] : *table) read_key(std::string(name) + '.' + std::string(key.str()), value);
  }

  void read_key(const std::string& name, const toml::node& node) {
    const Line line = node.source().begin.line;
    for (const Key& key : key_table()) {
      if (key.name != name) continue;
      lines_[name] = line;
      const std::string complaint = std::visit(ValueReader{node, settings_}, key.field);
      if (complaint.empty()) return;
      bad_[name] = line;
      return complain(line, name, complaint);
    }
    complain_of_unknown(line, name, false);
  }

  void complain_of_unknown(Line line, std::string_view name, bool table) {
    std::vector<std::string_view> known;
    if (table) {
      for (const KeyGroup& group : key_groups()) known.push_back(group.table);
    } else {
      for (const Key& key : key_table()) known.push_back(key.name);
    }
    const std::optional<std::string_view> near = nearest_name(name, known);
    std::string text = table ? "no such table" : "no such setting";
    text += near ? "; did you mean " + std::string(*near) + "?" : "; the example millrace.toml shows all";
    complain(line, name, text);
  }

  Line line_of(const std::string& key) const {
    const auto found = lines_.find(key);
    return found == lines_.end() ? 0 : found->second;  // 0: a default, which the file does not mention
  }

  void complain(Line line, std::string_view key, std::string_view text) {
    std::string where(name_);
    if (line > 0) where += ':' + std::to_string(line);
    complaints_.emplace(line, where + ": " + printable(key) + ": " + std::string(text));
  }

  const std::string name_;
  Settings settings_;
  std::map<std::string, Line> lines_;            // where a key stands
  std::map<std::string, Line> bad_;              // complained of already
  std::multimap<Line, std::string> complaints_;  // in the file's order
};

Result<std::string> read_file(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return errno_error("opening the settings " + path, errno);
  std::string text(kLargestFile + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = ::read(file.get(), text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error("reading the settings " + path, errno);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  if (size > kLargestFile)
    return Error{Code::kInvalid, path + ": longer than " + size_text({kLargestFile}) + ": not a settings file"};
  text.resize(size);
  return text;
}

}  // namespace

Result<Settings> load_settings(const std::string& path) {
  MILLRACE_TRY(const std::string text, read_file(path));
  return parse_settings(text, path);
}

Result<Settings> parse_settings(std::string_view toml_untrusted, std::string_view name) {
  const toml::parse_result parsed = toml::parse(toml_untrusted);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return Error{Code::kInvalid, std::string(name) + ':' + std::to_string(error.source().begin.line) +
                                     ": not TOML: " + printable(error.description())};
  }
  return Reading(name).finish(parsed.table());
}

}  // namespace millrace
