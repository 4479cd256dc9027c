// Packed coefficients: what is decoded from them is what is decoded from the file, by first access and by a seek index.
#include <algorithm>
#include <cstring>
#include <random>

#include "kernels/cpu/jpeg/dct/fast_dct.h"
#include "kernels/cpu/jpeg/decoder.h"
#include "kernels/jpeg/seek_index.h"
#include "kernels/packed/encoder.h"
#include "tests/support/jpeg/random_jpeg.h"
#include "tests/support/pictures/test_data.h"
#include "tests/support/pictures/test_images.h"
#include "tests/support/rounds.h"
#include "tests/unit/kernels/jpeg/jpeg_rig.h"

namespace millrace {
namespace {

using kernels::jpeg::Decoder;
using kernels::jpeg::Header;
using kernels::jpeg::Outcome;

constexpr auto kNoDeadline = std::chrono::steady_clock::time_point::max();

using Octets = std::vector<std::uint8_t>;

// A packed image with what must be readable behind it.
struct Packed {
  Octets bytes;
  kernels::packed::PackedImage image;
};

Packed in_memory(Octets bytes) {
  Packed packed{std::move(bytes), {}};
  const std::size_t size = packed.bytes.size();
  packed.bytes.resize(size + kernels::packed::kPadding, 0xEE);
  REQUIRE(packed.image.read({packed.bytes.data(), size}, kernels::packed::Check::kChecksum));
  return packed;
}

std::optional<Octets> pack(Decoder& decoder, const Header& header, const Octets& index = {}) {
  Octets bytes;
  kernels::packed::Encoder encoder;
  const Outcome outcome = decoder.pack(header, index, 0, encoder, bytes, kNoDeadline);
  REQUIRE(outcome != Outcome::kLate);
  return outcome == Outcome::kDecoded ? std::optional(bytes) : std::nullopt;
}

struct Decoded {
  Outcome outcome;
  Octets pixels;
  friend bool operator==(const Decoded&, const Decoded&) = default;
};

template <typename Source, typename... More>
Decoded decode_packed(Decoder& decoder, const Source& source, int channels, const kernels::Box& box, More... more) {
  Decoded decoded{Outcome::kNotHere, Octets(static_cast<std::size_t>(box.width) * box.height * channels)};
  const kernels::MutableU8View out{decoded.pixels.data(), box.width, box.height, channels,
                                   std::ptrdiff_t{box.width} * channels};
  decoded.outcome = decoder.decode(source, box, out, kNoDeadline, more...);
  return decoded;
}

// All samples that a request for planes gives, plane by plane, row by row.
class PlaneKeeper final : public kernels::jpeg::PlaneConsumer {
 public:
  PlaneKeeper(int planes, const kernels::Box& box, const Header& header, const std::array<int, 3>& sides)
      : planes_(planes), box_(box), h_(header.component[0].h), v_(header.component[0].v), sides_(sides) {}

  void begin() override {
    for (Octets& plane : kept_) plane.clear();
    done_ = {};
  }
  void take(const kernels::SamplePlane* planes, const int* ready) override {
    for (std::size_t i = 0; i < static_cast<std::size_t>(planes_); ++i) {
      const int across = 8 / sides_[i] * (i == 0 ? 1 : h_), down = 8 / sides_[i] * (i == 0 ? 1 : v_);
      const int end = std::min(ready[i], (box_.top + box_.height + down - 1) / down);
      for (int y = std::max(done_[i], box_.top / down); y < end; ++y) {
        const std::uint8_t* const row = planes[i].at(box_.left / across, y);
        kept_[i].insert(kept_[i].end(), row, row + (box_.left + box_.width - 1) / across - box_.left / across + 1);
      }
      done_[i] = std::max(done_[i], end);
    }
  }
  const std::array<Octets, 3>& kept() const { return kept_; }

 private:
  int planes_;
  kernels::Box box_;
  int h_, v_;
  std::array<int, 3> sides_;
  std::array<Octets, 3> kept_;
  std::array<int, 3> done_{};
};

template <typename Source>
std::array<Octets, 3> planes_of(Decoder& decoder, const Source& source, const Header& header, const kernels::Box& box,
                                const std::array<int, 3>& sides) {
  PlaneKeeper keeper(header.components, box, header, sides);
  const kernels::jpeg::PlaneRequest request{.box = box, .rows_held = 8, .sides = sides, .consumer = keeper};
  REQUIRE(decoder.decode_planes(source, request, kNoDeadline) == Outcome::kDecoded);
  return keeper.kept();
}

// Whole and by boxes, on every instruction set, from what each of them packs. Whether the file is for our decoder.
bool check_file(ByteView file, std::mt19937& random, int boxes) {
  const auto header = kernels::jpeg::read_header(file_bytes(file));
  if (!header) return false;
  const int channels = header->components;
  std::optional<Octets> first_packed;
  for (const auto& decoder : decoders()) {
    kernels::jpeg::Seeking seeking;
    const kernels::Box whole_box = whole(header->size);
    const Decoded picture = decode_packed(*decoder, *header, channels, whole_box, &seeking);
    const std::optional<Octets> packed = pack(*decoder, *header);
    REQUIRE(packed.has_value() == (picture.outcome == Outcome::kDecoded));
    if (!packed) return false;
    REQUIRE(pack(*decoder, *header, seeking.made) == packed);
    if (!first_packed) first_packed = packed;
    REQUIRE(*packed == *first_packed);

    const Packed form = in_memory(*packed);
    REQUIRE(decode_packed(*decoder, form.image, channels, whole_box) == picture);
    for (int i = 0; i < boxes; ++i) {
      const kernels::Box box = random_box(random, header->size);
      CAPTURE(box.left, box.top, box.width, box.height);
      REQUIRE(decode_packed(*decoder, form.image, channels, box) == decode_packed(*decoder, *header, channels, box));
      const int side = 1 << below(random, 4), chroma = std::min(8, side << below(random, 2));
      const std::array<int, 3> sides{side, chroma, chroma};
      CAPTURE(side, chroma);
      REQUIRE(planes_of(*decoder, form.image, *header, box, sides) ==
              planes_of(*decoder, *header, *header, box, sides));
    }
  }
  return true;
}

struct PackedSampling {
  std::uint32_t channels;
  int h, v;
};
constexpr PackedSampling kKernelSamplings[] = {{1, 1, 1}, {3, 1, 1}, {3, 2, 1}, {3, 1, 2}, {3, 2, 2}};

File make_packed_file(const PackedSampling& sampling, std::uint32_t width, std::uint32_t height,
                      int restart_interval = 0) {
  return make_jpeg({.pixels = make_pixels(width, height, sampling.channels, 7),
                    .quality = 85,
                    .h_samp = sampling.h,
                    .v_samp = sampling.v,
                    .restart_interval = restart_interval});
}

}  // namespace

TEST_CASE("packed pictures have the file's pixels and planes, for every sampling", "[kernels][packed]") {
  std::mt19937 random(51);
  for (const PackedSampling& sampling : kKernelSamplings) {
    for (const int restarts : {0, 7, 200}) {
      CAPTURE(sampling.channels, sampling.h, sampling.v, restarts);
      REQUIRE(check_file(make_packed_file(sampling, 613, 211, restarts), random, 8));
      REQUIRE(check_file(make_packed_file(sampling, 33, 40, restarts), random, 4));
    }
  }
}

TEST_CASE("packed photographs and unusual files have the file's pixels", "[kernels][packed]") {
  std::mt19937 random(52);
  for (const char* const folder : {"photos", "jpeg-variants"}) {
    const auto path = test_data(folder);
    if (!path) continue;
    int ours = 0, left = rounds(12);
    for (const auto& [name, file] : files_in(*path)) {
      CAPTURE(name);
      if (file.size() > 300'000) continue;  // the others show the same
      if (left > 0 && check_file(file, random, 3)) --left, ++ours;
    }
    REQUIRE(ours > 0);
  }
}

TEST_CASE("packed random streams have the file's pixels", "[kernels][packed]") {
  std::mt19937 random(53);
  for (int i = 0; i < rounds(100); ++i) {
    CAPTURE(i);
    const JpegStream stream = draw_jpeg({}, random);
    REQUIRE(check_file(write_jpeg(stream).bytes, random, 3) == is_plain(stream));
  }
}

TEST_CASE("packed random streams of any shape have the file's pixels", "[kernels][packed]") {
  std::mt19937 random(54);
  constexpr kernels::Size kSizes[] = {{1, 1},   {2, 1},    {1, 2},    {8, 8},     {16, 16},  {17, 33},
                                      {33, 15}, {4097, 3}, {3, 4097}, {256, 256}, {264, 48}, {520, 60}};
  for (const kernels::Size size : kSizes) {
    for (int i = 0; i < rounds(5); ++i) {
      CAPTURE(size.width, size.height, i);
      const JpegStream stream = draw_jpeg({.width = size.width, .height = size.height}, random);
      REQUIRE(check_file(write_jpeg(stream).bytes, random, 3) == is_plain(stream));
    }
  }
}

TEST_CASE("what our decoder does not decode whole is not packed", "[kernels][packed]") {
  std::mt19937 random(55);
  int refused = 0, packed = 0;
  for (int i = 0; i < rounds(300); ++i) {
    const JpegDraw draw{.range = i % 3 == 0 ? JpegDraw::Range::kWild : JpegDraw::Range::kOrdinary,
                        .restart_interval = i % 2 == 0 ? 0 : -1};
    const JpegFile good = write_jpeg(draw_jpeg(draw, random));
    const File file = i % 3 == 0 ? good.bytes : damage(good, static_cast<JpegDamage>(i % kJpegDamages), random);
    CAPTURE(i);
    ++(check_file(file, random, 1) ? packed : refused);
  }
  REQUIRE(refused > rounds(100));
  REQUIRE(packed > rounds(10));
}

TEST_CASE("a file is packed by an index that covers a part of it, and by a wrong one as without", "[kernels][packed]") {
  for (const PackedSampling& sampling : kKernelSamplings) {
    const File file = make_packed_file(sampling, 400, 500), other = make_packed_file(sampling, 400, 508);
    const Header header = *kernels::jpeg::read_header(file_bytes(file));
    for (const auto& decoder : decoders()) {
      kernels::jpeg::Seeking part, foreign;
      decode_packed(*decoder, header, header.components, kernels::Box{10, 100, 30, 60}, &part);
      decode_packed(*decoder, *kernels::jpeg::read_header(file_bytes(other)), header.components,
                    kernels::Box{0, 0, 400, 300}, &foreign);
      REQUIRE_FALSE(part.made.empty());
      const std::optional<Octets> expected = pack(*decoder, header);

      REQUIRE(expected);
      REQUIRE(pack(*decoder, header, part.made) == expected);
      REQUIRE(pack(*decoder, header, foreign.made) == expected);
      kernels::jpeg::Seeking all;
      decode_packed(*decoder, header, header.components, whole(header.size), &all);
      const std::size_t entry =
          kernels::jpeg::seek_format::kHeadBytes + (all.made.size() - kernels::jpeg::seek_format::kHeadBytes) / 16 * 8;
      all.made[entry + 1] ^= 1;  // where the piece before it ends
      const std::uint64_t sum = kernels::jpeg::seek_format::checksum(all.made, 0);
      std::memcpy(all.made.data(), &sum, sizeof sum);
      REQUIRE(pack(*decoder, header, all.made) == expected);
    }
  }
}

TEST_CASE("loops that are fused write what loops apart do, and nothing beside it", "[kernels][packed]") {
  using namespace kernels::jpeg;
  std::mt19937 random(57);
  const File file = make_packed_file({3, 1, 1}, 613, 80);
  const Header header = *read_header(file_bytes(file));
  const Packed packed = in_memory(*pack(*decoders().front(), header));
  Dequantiser dequantiser = make_dequantiser(*header.quant[header.component[0].quant]);
  add_fast_factors(*header.quant[header.component[0].quant], dequantiser);
  constexpr std::ptrdiff_t kStride = 8 * kernels::packed::kGroupBlocks + 128;
  for (const kernels::Target target : kernels::available_targets()) {
    const PackedDct fused(target), apart(target, PackedDct::Loops::kApart);
    for (int i = 0; i < 200; ++i) {
      const kernels::packed::Group group = packed.image.group(random() % packed.image.grid().groups());
      const int first = below(random, group.blocks), count = 1 + below(random, group.blocks - first);
      const Precision precision = i % 2 == 0 ? Precision::kExact : Precision::kFast;
      Octets ours(8 * kStride, 0xEE), theirs = ours;
      PackedRun run{.group = group, .first = first, .count = count, .dequantiser = &dequantiser, .stride = kStride};
      CAPTURE(name_of(target), first, count);

      run.out = ours.data() + 64;
      REQUIRE(fused.transform(run, precision));
      run.out = theirs.data() + 64;
      REQUIRE(apart.transform(run, precision));

      REQUIRE((ours == theirs));
    }
  }
}

TEST_CASE("packing and decoding packed pictures keep the deadline", "[kernels][packed]") {
  const File file = make_packed_file({3, 2, 2}, 400, 300);
  const Header header = *kernels::jpeg::read_header(file_bytes(file));
  const auto past = std::chrono::steady_clock::now() - std::chrono::seconds(1);
  Decoder decoder;
  kernels::packed::Encoder encoder;
  Octets bytes, pixels(400 * 300 * 3);
  const Packed packed = in_memory(*pack(decoder, header));

  REQUIRE(decoder.pack(header, {}, 0, encoder, bytes, past) == Outcome::kLate);
  REQUIRE(decoder.decode(packed.image, {0, 0, 400, 300}, {pixels.data(), 400, 300, 3, 1200}, past) == Outcome::kLate);
}

TEST_CASE("packed pictures that no encoder made are decoded to something, within bounds", "[kernels][packed]") {
  std::mt19937 random(56);
  for (const PackedSampling& sampling : kKernelSamplings) {
    const File file = make_packed_file(sampling, 300, 130);
    const Header header = *kernels::jpeg::read_header(file_bytes(file));
    const Octets good = *pack(*decoders().front(), header);
    for (int i = 0; i < rounds(200); ++i) {
      Packed lying = in_memory(good);
      const std::size_t size = good.size();
      for (int flips = 1 + below(random, 40); flips > 0; --flips)
        lying.bytes[random() % size] = static_cast<std::uint8_t>(random() % 4 == 0 ? 0xFF : random());
      if (!lying.image.read({lying.bytes.data(), size}, kernels::packed::Check::kShape)) continue;
      if (std::int64_t{lying.image.header().size.width} * lying.image.header().size.height > 1 << 20) continue;
      for (const auto& decoder : decoders()) {
        const kernels::Box box = random_box(random, lying.image.header().size);
        const int channels = lying.image.header().components;
        const Decoded decoded = decode_packed(*decoder, lying.image, channels, box);
        REQUIRE(decoded.outcome != Outcome::kLate);
        PlaneKeeper keeper(channels, box, lying.image.header(), {8, 8, 8});
        const kernels::jpeg::PlaneRequest request{.box = box, .rows_held = 8, .consumer = keeper};
        REQUIRE(decoder->decode_planes(lying.image, request, kNoDeadline) != Outcome::kLate);
      }
    }
  }
}

}  // namespace millrace
