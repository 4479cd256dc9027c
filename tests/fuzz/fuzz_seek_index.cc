// Decoding by a seek index that is anything: as it came, it changes no pixel; under a checksum made right, where it can
// lie, it crashes nothing. Bytes 0 and 1 choose picture, decoder and box; the others are laid over a good index (XOR),
// and longer or shorter than it they are the index's size.
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tests/fuzz/fuzz_jpeg_input.h"
#include "tests/fuzz/fuzz_pixels.h"
#include "tests/support/pictures/test_images.h"

namespace {

using namespace millrace;
using namespace millrace::kernels::jpeg;
using Memory = std::vector<std::uint8_t>;

constexpr std::uint64_t kOwner = 99;
constexpr auto kNoDeadline = std::chrono::steady_clock::time_point::max();

struct Picture {
  std::vector<std::byte> file;
  Header header;
  Memory index;
};

struct Decoded {
  Outcome outcome;
  Memory pixels;
};

Decoded decode(Decoder& decoder, const Header& header, const kernels::Box& box, Seeking* seeking) {
  const std::ptrdiff_t stride = std::ptrdiff_t{box.width} * header.components;
  Decoded decoded{Outcome::kNotHere, Memory(static_cast<std::size_t>(stride * box.height))};
  decoded.outcome = decoder.decode(
      header, box, {decoded.pixels.data(), box.width, box.height, header.components, stride}, kNoDeadline, seeking);
  return decoded;
}

const std::vector<Picture>& pictures() {
  static const std::vector<Picture> all = [] {
    std::vector<Picture> made(3);
    for (std::size_t i = 0; i < made.size(); ++i) {
      const std::uint32_t channels = i == 2 ? 1 : 3;
      const int factor = i == 0 ? 2 : 1;
      made[i].file = make_jpeg({.pixels = make_pixels(150, 110, channels, 3), .h_samp = factor, .v_samp = factor});
      made[i].header = *read_header({reinterpret_cast<const std::uint8_t*>(made[i].file.data()), made[i].file.size()});
      Seeking seeking{.owner = kOwner};
      decode(*decoders().front(), made[i].header, {0, 0, 150, 110}, &seeking);
      made[i].index = seeking.made;
    }
    return made;
  }();
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const Picture& picture = pictures()[data[0] % 3];
  Decoder& decoder = *decoders()[data[0] / 3 % decoders().size()];
  const kernels::Box box = box_of(data[1], picture.header.size);
  Memory index = picture.index;
  index.resize(data[0] & 128 ? size - 2 : index.size());
  for (std::size_t i = 2; i < size && i - 2 < index.size(); ++i) index[i - 2] ^= data[i];
  const Decoded expected = decode(decoder, picture.header, box, nullptr);
  if (expected.outcome != Outcome::kDecoded) std::abort();

  Seeking as_it_came{.index_untrusted = index, .owner = kOwner};
  const Decoded decoded = decode(decoder, picture.header, box, &as_it_came);
  if (decoded.outcome != Outcome::kDecoded || decoded.pixels != expected.pixels) std::abort();

  if (index.size() < 8) return 0;
  const std::uint64_t sum = seek_format::checksum(index, kOwner);
  std::memcpy(index.data(), &sum, sizeof sum);
  Seeking signed_again{.index_untrusted = index, .owner = kOwner};
  const Decoded lied_to = decode(decoder, picture.header, box, &signed_again);
  if (lied_to.outcome != Outcome::kDecoded) std::abort();
  if (signed_again.use == SeekUse::kRejected && lied_to.pixels != expected.pixels) std::abort();
  return 0;
}
