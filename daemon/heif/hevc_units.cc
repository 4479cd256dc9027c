#include "daemon/heif/hevc_units.h"

#include <algorithm>
#include <string>

namespace millrace {
namespace {

constexpr std::uint32_t kSlices = 32, kSequence = 33;  // types of units: slices are below
constexpr std::uint32_t kPadding = 64;                 // to the largest blocks

Error broken(const char* what) {
  return {Code::kInvalid, std::string("damaged HEIC: ") + what};
}

// Bits of a unit, without the bytes that keep start codes out of it. Beyond its end there are zeroes.
class Bits {
 public:
  explicit Bits(ByteView unit) : unit_(unit) {}

  std::uint32_t take(unsigned count) {
    std::uint32_t value = 0;
    for (unsigned i = 0; i < count; ++i) value = value << 1U | bit();
    return value;
  }
  void skip(unsigned count) {
    for (unsigned i = 0; i < count; ++i) bit();
  }
  // Exp-Golomb, 9.2. What is too large for 32 bits is the largest.
  std::uint32_t number() {
    unsigned zeroes = 0;
    while (zeroes < 32 && bit() == 0) ++zeroes;
    return zeroes == 32 ? 0xFFFFFFFF : (1U << zeroes) - 1 + take(zeroes);
  }

 private:
  std::uint32_t bit() {
    if (left_ == 0) {
      if (zeroes_ >= 2 && at_ < unit_.size() && unit_[at_] == std::byte{3}) {
        ++at_;
        zeroes_ = 0;
      }
      byte_ = at_ < unit_.size() ? std::to_integer<std::uint32_t>(unit_[at_++]) : 0;
      zeroes_ = byte_ == 0 ? zeroes_ + 1 : 0;
      left_ = 8;
    }
    return byte_ >> --left_ & 1U;
  }

  ByteView unit_;
  std::size_t at_ = 0;
  std::uint32_t byte_ = 0, zeroes_ = 0;
  unsigned left_ = 0;
};

// 7.3.2.2, as far as the bit depths.
Result<void> look_at_sequence(ByteView unit, Size largest, HevcUnits& units) {
  Bits bits(unit);
  bits.skip(16 + 4);
  const std::uint32_t layers = bits.take(3);
  bits.skip(1 + 96);
  std::uint32_t profiles = 0, levels = 0;
  for (std::uint32_t i = 0; i < layers; ++i) {
    profiles += bits.take(1);
    levels += bits.take(1);
  }
  if (layers > 0) bits.skip(2 * (8 - layers));
  bits.skip(profiles * 88 + levels * 8);
  bits.number();
  const std::uint32_t chroma = bits.number();
  if (chroma == 3) bits.skip(1);
  const std::uint32_t width = bits.number(), height = bits.number();
  if (bits.take(1) == 1) {
    for (int i = 0; i < 4; ++i) bits.number();
  }
  const std::uint32_t light = bits.number(), colour = bits.number();
  if (chroma > 3 || light > 8 || colour > 8) return broken("a parameter set makes no sense");
  if (width >= std::uint64_t{largest.width} + kPadding || height >= std::uint64_t{largest.height} + kPadding)
    return broken("a picture in it is larger than its boxes say");
  units.bits = std::max({units.bits, 8 + light, 8 + colour});
  units.chroma = std::max(units.chroma, chroma);
  return {};
}

class Reading {
 public:
  Reading(Size largest, const std::function<Result<void>(ByteView)>& see) : largest_(largest), see_(see) {}

  Result<void> add(ByteView unit) {
    if (unit.size() < 3) return {};
    const std::uint32_t header = *ByteReader(unit).big16(0), type = header >> 9U & 63U;
    if ((header >> 3U & 63U) != 0) return {};  // of another layer
    if (type < kSlices) ++units_.slices;
    if (type == kSequence) MILLRACE_TRY_VOID(look_at_sequence(unit, largest_, units_));
    return see_ ? see_(unit) : Result<void>();
  }

  const HevcUnits& units() const { return units_; }

 private:
  Size largest_;
  const std::function<Result<void>(ByteView)>& see_;
  HevcUnits units_;
};

}  // namespace

Result<HevcUnits> read_hevc_units(ByteView configuration_untrusted, ByteView data_untrusted, Size largest,
                                  const std::function<Result<void>(ByteView)>& see) {
  const ByteReader configuration(configuration_untrusted), data(data_untrusted);
  Reading reading(largest, see);
  const auto length_bytes = configuration.u8(21), arrays = configuration.u8(22);
  if (!arrays) return broken("its configuration is cut off");
  std::size_t at = 23;
  for (std::uint32_t array = 0; array < *arrays; ++array) {
    const auto count = configuration.big16(at + 1);
    if (!count) return broken("its configuration is cut off");
    at += 3;
    for (std::uint32_t i = 0; i < *count; ++i) {
      const auto bytes = configuration.big16(at);
      if (!bytes || configuration.size() - at - 2 < *bytes) return broken("its configuration is cut off");
      MILLRACE_TRY_VOID(reading.add(configuration.part(at + 2, *bytes)));
      at += 2 + *bytes;
    }
  }
  const std::size_t length = (*length_bytes & 3U) + 1;
  for (at = 0; at < data.size();) {
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < length; ++i) bytes = bytes << 8U | data.u8(at + i).value_or(0);
    at += length;
    if (at > data.size() || data.size() - at < bytes)
      return Error{Code::kInvalid, "truncated HEIC: the image data ends before the image does"};
    MILLRACE_TRY_VOID(reading.add(data.part(at, static_cast<std::size_t>(bytes))));
    at += static_cast<std::size_t>(bytes);
  }
  return reading.units();
}

}  // namespace millrace
