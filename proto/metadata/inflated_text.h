// A text that may be compressed, in memory of its own if it is. Thread-bound(its owner).
#pragma once

#include <cstddef>
#include <memory>

#include "proto/base/bytes.h"
#include "proto/base/result.h"

namespace millrace {

class InflatedText {
 public:
  // More than that of one text is not held.
  static constexpr std::size_t kMost = std::size_t{1} << 20;

  // What a zlib stream (RFC 1950) holds; of one that was cut off, what there is. Empty when the data is damaged or
  // comes to more than kMost. kExhausted: no memory.
  static Result<InflatedText> inflate(ByteView compressed_untrusted);

  // The bytes that hexadecimal digits stand for, two each, with white space between them; up to kMost digits' worth.
  // Empty when other characters occur. kExhausted: no memory.
  static Result<InflatedText> from_hex(ByteView digits_untrusted);

  ByteView view() const { return {memory_.get(), size_}; }

 private:
  InflatedText() = default;
  bool reserve(std::size_t bytes);

  std::unique_ptr<std::byte[]> memory_;
  std::size_t size_ = 0;
};

}  // namespace millrace
