#include "proto/metadata/inflated_text.h"

#include <zlib.h>

#include <algorithm>
#include <new>
#include <optional>

namespace millrace {
namespace {

constexpr std::size_t kMostGrowth = 1032;  // of deflate: 258 bytes for two bits

Error no_memory() {
  return {Code::kExhausted, "no memory is left for the texts of this image"};
}

bool is_space(unsigned char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

std::optional<unsigned> digit(unsigned char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

}  // namespace

bool InflatedText::reserve(std::size_t bytes) {
  memory_.reset(new (std::nothrow) std::byte[bytes]);
  return memory_ != nullptr;
}

Result<InflatedText> InflatedText::inflate(ByteView compressed_untrusted) {
  InflatedText text;
  const std::size_t input = std::min(compressed_untrusted.size(), kMost * 2);
  const std::size_t room = std::min(kMost, input * kMostGrowth) + 1;
  z_stream stream{};
  if (!text.reserve(room) || inflateInit(&stream) != Z_OK) return no_memory();
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(compressed_untrusted.data()));
  stream.avail_in = static_cast<uInt>(input);
  stream.next_out = reinterpret_cast<Bytef*>(text.memory_.get());
  stream.avail_out = static_cast<uInt>(room);
  const int status = ::inflate(&stream, Z_SYNC_FLUSH);
  inflateEnd(&stream);
  if (status == Z_MEM_ERROR) return no_memory();
  const std::size_t size = room - stream.avail_out;
  const bool usable = (status == Z_OK || status == Z_STREAM_END || status == Z_BUF_ERROR) && size <= kMost;
  text.size_ = usable ? size : 0;
  return text;
}

Result<InflatedText> InflatedText::from_hex(ByteView digits_untrusted) {
  InflatedText text;
  const ByteView digits = digits_untrusted.first(std::min(digits_untrusted.size(), kMost));
  if (!text.reserve(digits.size() / 2 + 1)) return no_memory();
  const auto at = [&](std::size_t i) { return std::to_integer<unsigned char>(digits[i]); };
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    while (i < digits.size() && is_space(at(i))) ++i;
    if (i + 1 >= digits.size()) break;
    const auto high = digit(at(i)), low = digit(at(i + 1));
    if (!high || !low) return InflatedText{};
    text.memory_[text.size_++] = static_cast<std::byte>(*high << 4U | *low);
  }
  return text;
}

}  // namespace millrace
