// Reads numbers at given positions of untrusted bytes: nullopt where a number would reach beyond them. Immutable view.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "proto/base/bytes.h"

namespace millrace {

class ByteReader {
 public:
  explicit ByteReader(ByteView bytes_untrusted) : bytes_(bytes_untrusted) {}

  std::size_t size() const { return bytes_.size(); }
  ByteView bytes() const { return bytes_; }

  std::optional<std::uint8_t> u8(std::size_t at) const {
    if (at >= size()) return std::nullopt;
    return std::to_integer<std::uint8_t>(bytes_[at]);
  }
  std::optional<std::uint32_t> big16(std::size_t at) const { return number<2>(at, Order::kBig); }
  std::optional<std::uint32_t> big32(std::size_t at) const { return number<4>(at, Order::kBig); }
  std::optional<std::uint32_t> little16(std::size_t at) const { return number<2>(at, Order::kLittle); }
  std::optional<std::uint32_t> little24(std::size_t at) const { return number<3>(at, Order::kLittle); }
  std::optional<std::uint32_t> little32(std::size_t at) const { return number<4>(at, Order::kLittle); }

  // Whether exactly these bytes stand at `at`.
  bool holds(std::size_t at, std::string_view expected) const {
    const ByteView found = part(at, expected.size());
    return found.size() == expected.size() && text(found) == expected;
  }

  // As much of `length` bytes from `at` on as there is.
  ByteView part(std::size_t at, std::size_t length) const {
    if (at >= size()) return {};
    return bytes_.subspan(at, length < size() - at ? length : size() - at);
  }

  static std::string_view text(ByteView bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

 private:
  enum class Order { kBig, kLittle };

  template <std::size_t kBytes>
  std::optional<std::uint32_t> number(std::size_t at, Order order) const {
    if (at > size() || size() - at < kBytes) return std::nullopt;
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < kBytes; ++i) {
      const std::size_t from = order == Order::kBig ? i : kBytes - 1 - i;
      value = value << 8U | std::to_integer<std::uint32_t>(bytes_[at + from]);
    }
    return value;
  }

  ByteView bytes_;
};

}  // namespace millrace
