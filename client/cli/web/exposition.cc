#include "client/cli/web/exposition.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "proto/base/printable.h"

namespace millrace::cli {
namespace {

constexpr std::size_t kMostOfALabel = 200;  // bytes
constexpr std::string_view kOpenMetricsType = "application/openmetrics-text";

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

std::string_view kind_word(FamilyKind kind, Exposition::Form form) {
  switch (kind) {
    case FamilyKind::kCounter:
      return "counter";
    case FamilyKind::kHistogram:
      return "histogram";
    case FamilyKind::kInfo:
      return form == Exposition::Form::kOpenMetrics ? "info" : "gauge";
    case FamilyKind::kGauge:
      break;
  }
  return "gauge";
}

// Backslashes, ends of lines and, of labels, quotes.
std::string escaped(std::string_view text, bool quotes) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '"' && quotes) {
      out += "\\\"";
    } else {
      out += c;
    }
  }
  return out;
}

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  std::array<char, 32> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  return std::string(digits.data(), end);
}

// OpenMetrics wants the bounds of buckets as floats: "1.0".
std::string bound(double value) {
  std::string text = number(value);
  if (text.find_first_not_of("0123456789") == std::string::npos) text += ".0";
  return text;
}

std::string_view without(std::string_view name, std::string_view suffix) {
  return name.ends_with(suffix) ? name.substr(0, name.size() - suffix.size()) : name;
}

// What OpenMetrics calls the family.
std::string_view family_name(const Family& family) {
  if (family.kind == FamilyKind::kCounter) return without(family.name, "_total");
  if (family.kind == FamilyKind::kInfo) return without(family.name, "_info");
  return family.name;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") + 1 - first);
}

// The part of `text` before `separator`, of which it is then rid.
std::string_view take_part(std::string_view& text, char separator) {
  const std::size_t at = std::min(text.find(separator), text.size());
  const std::string_view part = trimmed(text.substr(0, at));
  text.remove_prefix(std::min(at + 1, text.size()));
  return part;
}

struct MediaRange {
  std::string_view type;
  std::string_view version;
  double quality = 1;
};

MediaRange parsed_range(std::string_view text) {
  MediaRange range{.type = take_part(text, ';')};
  while (!text.empty()) {
    std::string_view value = take_part(text, ';');
    const std::string_view key = take_part(value, '=');
    value = trimmed(value);
    if (key == "version") range.version = value;
    if (key != "q") continue;
    range.quality = 0;
    std::from_chars(value.data(), value.data() + value.size(), range.quality);
  }
  return range;
}

}  // namespace

bool is_metric_name(std::string_view text) {
  return !text.empty() && is_letter(text.front()) &&
         std::all_of(text.begin(), text.end(), [](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

void Exposition::family(const Family& family) {
  name_ = family.name;
  const std::string_view shown = form_ == Form::kOpenMetrics ? family_name(family) : family.name;
  text_.append("# HELP ").append(shown).append(" ").append(escaped(family.help, form_ == Form::kOpenMetrics));
  text_.append("\n# TYPE ").append(shown).append(" ").append(kind_word(family.kind, form_)).append("\n");
  const bool has_unit = !family.unit.empty() && shown.ends_with("_" + std::string(family.unit));
  if (form_ == Form::kOpenMetrics && has_unit)
    text_.append("# UNIT ").append(shown).append(" ").append(family.unit).append("\n");
}

void Exposition::line(std::string_view name, std::string_view suffix, const Labels& labels, std::string_view value) {
  text_.append(name).append(suffix);
  char before = '{';
  for (const Label& label : labels) {
    text_ += std::exchange(before, ',');
    text_.append(label.name).append("=\"");
    text_.append(escaped(printable(label.value_untrusted, kMostOfALabel), true)).append("\"");
  }
  if (!labels.empty()) text_ += '}';
  text_.append(" ").append(value).append("\n");
}

void Exposition::sample(double value, const Labels& labels) {
  line(name_, "", labels, number(value));
}

void Exposition::histogram(const std::vector<Bucket>& buckets, double sum, std::uint64_t count) {
  for (const Bucket& bucket : buckets) {
    if (std::isinf(bucket.most)) continue;
    line(name_, "_bucket", {{"le", bound(bucket.most)}}, std::to_string(bucket.count));
  }
  line(name_, "_bucket", {{"le", "+Inf"}}, std::to_string(count));
  line(name_, "_sum", {}, number(sum));
  line(name_, "_count", {}, std::to_string(count));
}

std::string Exposition::text() && {
  if (form_ == Form::kOpenMetrics) text_ += "# EOF\n";
  return std::move(text_);
}

std::string_view content_type(Exposition::Form form) {
  return form == Exposition::Form::kOpenMetrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                                : "text/plain; version=0.0.4; charset=utf-8";
}

Exposition::Form asked_form(std::string_view accept_untrusted) {
  double open_metrics = 0, text = 0;
  while (!accept_untrusted.empty()) {
    const MediaRange range = parsed_range(take_part(accept_untrusted, ','));
    if (range.type == kOpenMetricsType && (range.version.empty() || range.version == "1.0.0"))
      open_metrics = std::max(open_metrics, range.quality);
    if (range.type == "text/plain") text = std::max(text, range.quality);
  }
  return open_metrics > 0 && open_metrics >= text ? Exposition::Form::kOpenMetrics : Exposition::Form::kText;
}

}  // namespace millrace::cli
