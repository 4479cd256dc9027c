// The seek index: decoding with one gives what decoding without one gives, whatever the file is and whatever boxes made
// the index; a damaged index changes nothing; one that lies under a good checksum is read without a fault. The first
// eight bytes choose the boxes and the damage.
#include <cstring>
#include <random>
#include <vector>

#include "tests/fuzz/fuzz_jpeg_input.h"
#include "tests/fuzz/fuzz_pixels.h"

namespace {

using namespace millrace;
using namespace millrace::kernels::jpeg;

constexpr std::uint64_t kOwner = 7;

using Bytes8 = std::vector<std::uint8_t>;

struct Decoded {
  Outcome outcome;
  Bytes8 pixels;
};

bool same(const Decoded& a, const Decoded& b) {
  return a.outcome == b.outcome && (a.outcome != Outcome::kDecoded || a.pixels == b.pixels);
}

Decoded decode(Decoder& decoder, const Header& header, const kernels::Box& box, Seeking* seeking) {
  constexpr auto kNoDeadline = std::chrono::steady_clock::time_point::max();
  const std::ptrdiff_t stride = std::ptrdiff_t{box.width} * header.components;
  Decoded decoded{Outcome::kNotHere, Bytes8(static_cast<std::size_t>(stride * box.height))};
  const kernels::MutableU8View out{decoded.pixels.data(), box.width, box.height, header.components, stride};
  decoded.outcome = decoder.decode(header, box, out, kNoDeadline, seeking);
  return decoded;
}

// The box with the index, which grows by what this decoding finds out.
void check_box(Decoder& decoder, const Header& header, const kernels::Box& box, Bytes8& index) {
  Seeking seeking{.index_untrusted = index, .owner = kOwner};
  const Decoded indexed = decode(decoder, header, box, &seeking);
  const Decoded expected = decode(decoder, header, box, nullptr);
  require(same(indexed, expected));
  if (!seeking.made.empty()) index = seeking.made;
}

// `index` with a few bits flipped: as without it. With a checksum that says otherwise: read without a fault.
void check_damaged(Decoder& decoder, const Header& header, const kernels::Box& box, Bytes8 index, unsigned choice) {
  const Decoded expected = decode(decoder, header, box, nullptr);
  if (index.empty() || expected.outcome != Outcome::kDecoded) return;
  for (unsigned i = 0; i < 4; ++i)
    index[(choice * 37 + i * i * 101) % index.size()] ^= static_cast<std::uint8_t>(1U << (choice + i) % 8);
  Seeking damaged{.index_untrusted = index, .owner = kOwner};
  require(same(decode(decoder, header, box, &damaged), expected));
  const std::uint64_t sum = seek_format::checksum(index, kOwner);
  std::memcpy(index.data(), &sum, sizeof sum);
  Seeking lying{.index_untrusted = index, .owner = kOwner};
  decode(decoder, header, box, &lying);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto header = header_of(data, size);
  if (!header) return 0;
  Decoder& decoder = *decoders()[data[0] % decoders().size()];
  Bytes8 index;
  std::mt19937 random(data[0] | static_cast<unsigned>(data[4]) << 8);
  for (int i = 0; i < 4; ++i) {
    std::uint8_t choice[kBoxBytes];
    for (std::size_t k = 0; k < kBoxBytes; ++k) choice[k] = static_cast<std::uint8_t>(i == 0 ? data[k] : random());
    const kernels::Box box = any_box_of(choice, header->size);
    check_box(decoder, *header, box, index);
    check_damaged(decoder, *header, box, index, choice[0]);
  }
  return 0;
}
