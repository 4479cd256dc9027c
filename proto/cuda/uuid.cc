#include "proto/cuda/uuid.h"

#include <charconv>

namespace millrace::cuda {
namespace {

constexpr std::string_view kPrefix = "GPU";

bool begins_a_group(std::size_t byte) {
  return byte == 0 || byte == 4 || byte == 6 || byte == 8 || byte == 10;
}

}  // namespace

std::string uuid_text(const Uuid& uuid) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text(kPrefix);
  for (std::size_t i = 0; i < uuid.size(); ++i) {
    if (begins_a_group(i)) text += '-';
    text += kDigits[uuid[i] >> 4];
    text += kDigits[uuid[i] & 15];
  }
  return text;
}

std::optional<Uuid> uuid_from_text(std::string_view text_untrusted) {
  std::string_view left = text_untrusted;
  if (!left.starts_with(kPrefix)) return std::nullopt;
  left.remove_prefix(kPrefix.size());
  Uuid uuid{};
  for (std::size_t i = 0; i < uuid.size(); ++i) {
    if (begins_a_group(i)) {
      if (!left.starts_with('-')) return std::nullopt;
      left.remove_prefix(1);
    }
    if (left.size() < 2) return std::nullopt;
    const auto [end, error] = std::from_chars(left.data(), left.data() + 2, uuid[i], 16);
    if (error != std::errc() || end != left.data() + 2) return std::nullopt;
    left.remove_prefix(2);
  }
  if (!left.empty()) return std::nullopt;
  return uuid;
}

}  // namespace millrace::cuda
