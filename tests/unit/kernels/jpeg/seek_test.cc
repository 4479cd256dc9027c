// The seek index: decoding with one gives the same pixels as without, whatever the index is.
#include <xxhash.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>

#include "kernels/cpu/jpeg/decoder.h"
#include "tests/support/pictures/every_decoder.h"
#include "tests/support/pictures/test_data.h"
#include "tests/support/pictures/test_images.h"

namespace millrace::kernels::jpeg {
namespace {

using SeekFile = std::vector<std::uint8_t>;
constexpr std::uint64_t kOwner = 42;
constexpr auto kSeekNoDeadline = std::chrono::steady_clock::time_point::max();

int below_seek(std::mt19937& random, int bound) {
  return static_cast<int>(random() % static_cast<unsigned>(bound));
}

Box random_seek_box(std::mt19937& random, Size size) {
  const int left = below_seek(random, size.width), top = below_seek(random, size.height);
  return {left, top, 1 + below_seek(random, size.width - left), 1 + below_seek(random, size.height - top)};
}

struct SeekSampling {
  int channels, h, v;
};
constexpr SeekSampling kSeekSamplings[] = {{1, 1, 1}, {3, 1, 1}, {3, 2, 1}, {3, 1, 2}, {3, 2, 2}};

SeekFile encode(const SeekSampling& sampling, const Pixels& pixels) {
  const auto jpeg = make_jpeg({.pixels = pixels, .quality = 85, .h_samp = sampling.h, .v_samp = sampling.v});
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(jpeg.data());
  return {bytes, bytes + jpeg.size()};
}

SeekFile make_seek_file(const SeekSampling& sampling, std::uint32_t width, std::uint32_t height,
                        std::uint32_t seed = 7) {
  return encode(sampling, make_pixels(width, height, static_cast<std::uint32_t>(sampling.channels), seed));
}

SeekFile make_flat_file(const SeekSampling& sampling, std::uint32_t width, std::uint32_t height) {
  Pixels pixels = make_pixels(width, height, static_cast<std::uint32_t>(sampling.channels), 0);
  std::fill(pixels.data.begin(), pixels.data.end(), std::uint8_t{100});
  return encode(sampling, pixels);
}

struct SeekDecoded {
  Outcome outcome;
  std::vector<std::uint8_t> pixels;
  friend bool operator==(const SeekDecoded& a, const SeekDecoded& b) {
    return a.outcome == b.outcome && (a.outcome != Outcome::kDecoded || a.pixels == b.pixels);
  }
};

SeekDecoded decode_sought(Decoder& decoder, const SeekFile& file, const Box& box, Seeking* seeking) {
  const auto header = read_header(file);
  if (!header) return {Outcome::kNotHere, {}};
  SeekDecoded decoded{Outcome::kNotHere,
                      std::vector<std::uint8_t>(static_cast<std::size_t>(box.width) * box.height * header->components)};
  const MutableU8View out{decoded.pixels.data(), box.width, box.height, header->components,
                          std::ptrdiff_t{box.width} * header->components};
  decoded.outcome = decoder.decode(*header, box, out, kSeekNoDeadline, seeking);
  return decoded;
}

Size seek_size_of(const SeekFile& file) {
  return read_header(file)->size;
}

SeekFile seek_index_of(Decoder& decoder, const SeekFile& file) {
  const Size size = seek_size_of(file);
  Seeking seeking{.owner = kOwner};
  REQUIRE(decode_sought(decoder, file, {0, 0, size.width, size.height}, &seeking).outcome == Outcome::kDecoded);
  REQUIRE_FALSE(seeking.made.empty());
  return seeking.made;
}

SeekIndex read_index(const SeekFile& file, const SeekFile& index_bytes) {
  SeekIndex index;
  REQUIRE(index.read(index_bytes, *read_header(file), kOwner));
  return index;
}

std::int64_t covered(const SeekFile& file, const SeekFile& index_bytes) {
  return read_index(file, index_bytes).places().back().mcu;
}

std::size_t places(const SeekFile& file, const SeekFile& index_bytes) {
  return read_index(file, index_bytes).places().size();
}

// The checksum made right again: what a damaged disk can hardly do.
void sign(SeekFile& index) {
  const std::uint64_t sum = seek_format::checksum(index, kOwner);
  std::memcpy(index.data(), &sum, sizeof sum);
}

std::vector<std::unique_ptr<Decoder>> all_decoders() {
  return every_decoder();
}

// Files of MILLRACE_TEST_DATA that our decoder takes.
std::vector<SeekFile> test_files(const char* folder, std::size_t most) {
  std::vector<SeekFile> files;
  const auto path = test_data(folder);
  if (!path) return files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(*path)) {
    if (!entry.is_regular_file() || files.size() == most) continue;
    std::ifstream stream(entry.path(), std::ios::binary);
    SeekFile file((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
    if (read_header(file)) files.push_back(std::move(file));
  }
  return files;
}

}  // namespace

TEST_CASE("boxes are the same with a seek index, for every sampling and instruction set", "[kernels][seek]") {
  std::mt19937 random(1);
  for (const auto& decoder : all_decoders()) {
    for (const SeekSampling& sampling : kSeekSamplings) {
      const SeekFile file = make_seek_file(sampling, 333, 211);
      const SeekFile index = seek_index_of(*decoder, file);
      for (int i = 0; i < 12; ++i) {
        const Box box = random_seek_box(random, seek_size_of(file));
        Seeking seeking{.index_untrusted = index, .owner = kOwner};

        const SeekDecoded expected = decode_sought(*decoder, file, box, nullptr);
        const SeekDecoded indexed = decode_sought(*decoder, file, box, &seeking);

        CAPTURE(sampling.channels, sampling.h, sampling.v, box.left, box.top, box.width, box.height);
        REQUIRE(expected.outcome == Outcome::kDecoded);
        REQUIRE(indexed == expected);
        REQUIRE(seeking.use == SeekUse::kUsed);
        REQUIRE(seeking.made.empty());
      }
    }
  }
}

TEST_CASE("boxes of photographs and unusual files are the same with a seek index", "[kernels][seek]") {
  std::mt19937 random(2);
  Decoder decoder;
  for (const char* const folder : {"photos", "jpeg-variants"}) {
    for (const SeekFile& file : test_files(folder, 60)) {
      std::vector<std::uint8_t> index;
      for (int i = 0; i < 6; ++i) {
        const Box box = random_seek_box(random, seek_size_of(file));
        Seeking seeking{.index_untrusted = index, .owner = kOwner};

        const SeekDecoded expected = decode_sought(decoder, file, box, nullptr);
        const SeekDecoded indexed = decode_sought(decoder, file, box, &seeking);

        REQUIRE(indexed == expected);
        REQUIRE(seeking.use != SeekUse::kRejected);
        if (!seeking.made.empty()) index = seeking.made;
      }
    }
  }
}

TEST_CASE("a seek index has the bytes of the worked example", "[kernels][seek]") {
  const std::uint8_t data[64] = {0x12, 0x34, 0x56}, scan[] = {0x12, 0x34, 0x56, 0xFF, 0xD9};
  SeekRecorder recorder(Target::kScalar);
  const std::int16_t levels[] = {5, 5, 5, -1};
  std::copy_n(levels, 4, recorder.begin({.columns = 2, .rows = 2, .blocks_in_mcu = 1, .components = 1}, {}, 4));
  recorder.add({2, 11});
  recorder.add({4, 21});
  Header header{.components = 1, .scan = scan};
  header.dc[0] = HuffmanSpec{.counts = {1}, .symbols = {4}};
  header.ac[0] = HuffmanSpec{.counts = {2}, .symbols = {0, 1}};
  SeekFile index;

  REQUIRE(recorder.write({}, {.header = header, .data_bytes = 3, .unstuffed = data}, kOwner, index));

  const SeekFile head = {2, 1, 1, 0, 2, 0, 2, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0};
  const SeekFile entries = {2, 11, 0, 0x50, 0, 0, 0, 0, 2, 10, 0, 0xF0, 0xFF, 0, 0, 0};
  REQUIRE(SeekFile(index.begin() + 8, index.begin() + 32) == head);
  REQUIRE(SeekFile(index.begin() + 40, index.end()) == entries);
  std::uint64_t digest = 0;
  std::memcpy(&digest, index.data() + 32, sizeof digest);
  std::uint64_t sum = ~kOwner;
  for (const auto& table : {header.dc[0], header.ac[0]}) {
    sum = XXH3_64bits_withSeed(table->counts.data(), 16, sum);
    sum = XXH3_64bits_withSeed(table->symbols.data(), 256, sum);
  }
  REQUIRE(digest == XXH3_64bits_withSeed(scan, sizeof scan, sum));
}

TEST_CASE("a seek index reaches as far as boxes did, and grows", "[kernels][seek]") {
  const SeekFile file = make_seek_file({3, 2, 2}, 300, 400);
  Decoder decoder;
  Seeking first{.owner = kOwner};
  decode_sought(decoder, file, {0, 0, 50, 100}, &first);
  Seeking inside{.index_untrusted = first.made, .owner = kOwner};
  Seeking below_seek{.index_untrusted = first.made, .owner = kOwner};

  const SeekDecoded upper = decode_sought(decoder, file, {100, 10, 50, 40}, &inside);
  const SeekDecoded lower = decode_sought(decoder, file, {30, 80, 200, 250}, &below_seek);

  REQUIRE(inside.use == SeekUse::kUsed);
  REQUIRE(upper == decode_sought(decoder, file, {100, 10, 50, 40}, nullptr));
  REQUIRE(below_seek.use == SeekUse::kExtended);
  REQUIRE(lower == decode_sought(decoder, file, {30, 80, 200, 250}, nullptr));
  REQUIRE(covered(file, below_seek.made) > covered(file, first.made));
}

TEST_CASE("an index that grew covers the image, and serves it", "[kernels][seek]") {
  for (const SeekSampling& sampling : kSeekSamplings) {
    const SeekFile file = make_seek_file(sampling, 250, 260);
    Decoder decoder;
    std::vector<std::uint8_t> index;
    for (const int bottom : {3, 90, 91, 170, 260}) {
      const Box box{bottom % 20, 0, 40, bottom};
      Seeking seeking{.index_untrusted = index, .owner = kOwner};
      REQUIRE(decode_sought(decoder, file, box, &seeking) == decode_sought(decoder, file, box, nullptr));
      if (!seeking.made.empty()) index = seeking.made;
    }
    const Box whole{0, 0, 250, 260};
    Seeking rest{.index_untrusted = index, .owner = kOwner};

    REQUIRE(decode_sought(decoder, file, whole, &rest) == decode_sought(decoder, file, whole, nullptr));

    if (!rest.made.empty()) index = rest.made;
    REQUIRE(covered(file, index) == seek_grid(*read_header(file)).mcus());
  }
}

TEST_CASE("an index covers pictures of one colour, whose blocks take few bits", "[kernels][seek]") {
  for (const SeekSampling& sampling : kSeekSamplings) {
    const SeekFile file = make_flat_file(sampling, 1500, 1900);
    Decoder decoder;

    REQUIRE(covered(file, seek_index_of(decoder, file)) == seek_grid(*read_header(file)).mcus());
  }
}

TEST_CASE("an index has as many places, whatever kind of picture came before", "[kernels][seek]") {
  Decoder fresh, used;
  seek_index_of(used, make_seek_file({3, 2, 2}, 300, 400));
  const SeekFile grey = make_seek_file({1, 1, 1}, 300, 400);

  REQUIRE(places(grey, seek_index_of(used, grey)) >= places(grey, seek_index_of(fresh, grey)) - 1);
}

TEST_CASE("an index has all places of a picture with more than a stream keeps", "[kernels][seek]") {
  constexpr std::size_t kMostKept = 4300;  // notes of one stream
  const SeekFile file = make_seek_file({1, 1, 1}, 2800, 2800);
  for (const Streams streams : {Streams::kOne, Streams::kTwo}) {
    Decoder decoder(best_target(), streams, SegmentPath::kTurns);

    const SeekFile index = seek_index_of(decoder, file);

    REQUIRE(places(file, index) > kMostKept);
    REQUIRE(read_index(file, index).widest() < 100);
    REQUIRE(covered(file, index) == seek_grid(*read_header(file)).mcus());
  }
}

TEST_CASE("a damaged, truncated or foreign seek index is rejected and changes nothing", "[kernels][seek]") {
  std::mt19937 random(3);
  const SeekFile file = make_seek_file({3, 1, 1}, 200, 150), other = make_seek_file({3, 1, 1}, 200, 150, 8);
  Decoder decoder;
  const SeekFile good = seek_index_of(decoder, file);
  const Box box{50, 60, 70, 80};
  const SeekDecoded expected = decode_sought(decoder, file, box, nullptr);
  const auto check = [&](const SeekFile& index, std::uint64_t owner) {
    Seeking seeking{.index_untrusted = index, .owner = owner};
    REQUIRE(decode_sought(decoder, file, box, &seeking) == expected);
    REQUIRE(seeking.use == SeekUse::kRejected);
    REQUIRE_FALSE(seeking.made.empty());
  };

  check(seek_index_of(decoder, other), kOwner);  // of another file with the same shape
  check(good, kOwner + 1);
  for (int i = 0; i < 300; ++i) {
    SeekFile damaged = good;
    damaged[random() % damaged.size()] ^= static_cast<std::uint8_t>(1U << random() % 8);
    check(damaged, kOwner);
  }
  for (std::size_t size = 1; size < good.size(); size += 97) check(SeekFile(good.begin(), good.begin() + size), kOwner);
}

TEST_CASE("a seek index that lies under a good checksum is harmless", "[kernels][seek]") {
  std::mt19937 random(4);
  const SeekFile file = make_seek_file({3, 2, 2}, 300, 250);
  int wrong = 0, rejected = 0;
  for (const auto& decoder : all_decoders()) {
    const SeekFile good = seek_index_of(*decoder, file);
    for (int i = 0; i < 400; ++i) {
      SeekFile lying = good;
      for (int flips = 1 + below_seek(random, 3); flips > 0; --flips)
        lying[8 + random() % (lying.size() - 8)] ^= static_cast<std::uint8_t>(1U << random() % 8);
      if (i % 4 == 0) std::fill_n(lying.end() - 48 - below_seek(random, 100), 40, static_cast<std::uint8_t>(random()));
      sign(lying);
      const Box box = random_seek_box(random, seek_size_of(file));
      Seeking seeking{.index_untrusted = lying, .owner = kOwner};

      const SeekDecoded expected = decode_sought(*decoder, file, box, nullptr);
      const SeekDecoded decoded = decode_sought(*decoder, file, box, &seeking);

      REQUIRE(decoded.outcome == Outcome::kDecoded);
      wrong += !(decoded == expected);
      rejected += seeking.use == SeekUse::kRejected;
      if (seeking.use == SeekUse::kRejected) REQUIRE(decoded == expected);
    }
  }
  REQUIRE(rejected > 100);
  REQUIRE(wrong <= rejected / 20);  // what no end position and no predictor contradicts
}

TEST_CASE("a file that changed under its seek index is decoded as without one", "[kernels][seek]") {
  std::mt19937 random(5);
  const SeekFile file = make_seek_file({3, 1, 1}, 300, 300);
  Decoder decoder;
  const SeekFile index = seek_index_of(decoder, file);
  const auto scan = static_cast<std::size_t>(read_header(file)->scan.data() - file.data());
  for (int i = 0; i < 400; ++i) {
    SeekFile changed = file;
    changed[scan + random() % (file.size() - scan)] ^= static_cast<std::uint8_t>(1U << random() % 8);
    Seeking seeking{.index_untrusted = index, .owner = kOwner};
    const Box box = random_seek_box(random, {300, 300});

    REQUIRE(decode_sought(decoder, changed, box, &seeking) == decode_sought(decoder, changed, box, nullptr));
    REQUIRE(seeking.use == SeekUse::kRejected);
  }
}

TEST_CASE("an index is of no use to a file whose Huffman tables changed", "[kernels][seek]") {
  const SeekFile file = make_seek_file({3, 1, 1}, 300, 300);
  Decoder decoder;
  const SeekFile index = seek_index_of(decoder, file);
  int tables = 0;
  for (std::size_t at = 0; at + 60 < file.size(); ++at) {
    if (file[at] != 0xFF || file[at + 1] != 0xC4) continue;
    SeekFile changed = file;
    std::swap(changed[at + 21], changed[at + 22]);  // symbols
    Seeking seeking{.index_untrusted = index, .owner = kOwner};
    const Box box{100, 150, 80, 60};
    ++tables;

    REQUIRE(decode_sought(decoder, changed, box, &seeking) == decode_sought(decoder, changed, box, nullptr));
    REQUIRE(seeking.use == SeekUse::kRejected);
  }
  REQUIRE(tables == 4);
}

TEST_CASE("a scan cut off behind its index is not decoded", "[kernels][seek]") {
  const SeekFile file = make_seek_file({3, 2, 1}, 160, 160);
  Decoder decoder;
  const SeekFile index = seek_index_of(decoder, file);
  for (std::size_t cut = 1; cut < 400; cut += 7) {
    const SeekFile shorter(file.begin(), file.end() - static_cast<std::ptrdiff_t>(cut));
    Seeking seeking{.index_untrusted = index, .owner = kOwner};
    const Box box{10, 10, 30, 30};
    REQUIRE(decode_sought(decoder, shorter, box, &seeking) == decode_sought(decoder, shorter, box, nullptr));
  }
}

}  // namespace millrace::kernels::jpeg
