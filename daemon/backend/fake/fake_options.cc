#include "daemon/backend/fake/fake_options.h"

#include <charconv>
#include <optional>
#include <string>

#include "proto/base/printable.h"

namespace millrace {
namespace {

constexpr std::uint64_t kLongestDelay = 60'000'000;  // microseconds
constexpr std::uint64_t kMostDepth = 1024;

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool set(FakeOptions& options, std::string_view key, std::uint64_t value) {
  if (key == "delay_us" && value <= kLongestDelay) return options.delay = std::chrono::microseconds(value), true;
  if (key == "fail_every") return options.fail_every = value, true;
  if (key == "lose_after") return options.lose_after = value, true;
  if (key == "back_after") return options.back_after = value, true;
  if (key == "depth" && value >= 1 && value <= kMostDepth)
    return options.depth = static_cast<std::uint32_t>(value), true;
  if (key == "first" && value <= 1) return options.first = value == 1, true;
  if (key == "instant" && value <= 1) return options.instant = value == 1, true;
  return false;
}

}  // namespace

Result<FakeOptions> FakeOptions::parse(std::string_view text) {
  FakeOptions options;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    const std::size_t equals = std::min(item.find('='), item.size());
    const std::optional<std::uint64_t> value = number(item.substr(std::min(equals + 1, item.size())));
    if (!value || !set(options, item.substr(0, equals), *value))
      return Error{Code::kInvalid, '"' + printable(item) +
                                       "\" is not an option; use delay_us, fail_every, lose_after, back_after, depth, "
                                       "first or instant, each with =NUMBER"};
  }
  return options;
}

}  // namespace millrace
