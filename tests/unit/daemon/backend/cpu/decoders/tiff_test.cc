// TIFF: pixels of its kinds, strips and tiles, boxes against whole pictures, and the verdicts on bad files. What Pillow makes
// of many more: tests/golden/tiff_files.py.
#include "daemon/backend/cpu/decoders/tiff/tiff_decoder.h"
#include "tests/support/pictures/test_images.h"
#include "tests/unit/daemon/backend/cpu/decoders/decoder_rig.h"

namespace millrace {
namespace {

using namespace std::string_literals;

std::vector<int> samples_of(const Pixels& pixels, std::uint32_t kept) {
  std::vector<int> samples;
  for (std::size_t i = 0; i < pixels.data.size(); ++i) {
    if (i % pixels.channels < kept) samples.push_back(pixels.data[i]);
  }
  return samples;
}

SourceInfo tiff_probed(const File& file) {
  const Result<SourceInfo> info = probe_image(file, SampleLimits{}, UseOrientation::kYes);
  REQUIRE(info);
  return *info;
}

std::string tiff_number(std::uint32_t value, int bytes = 4) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> 8 * i & 255U);
  return text;
}

struct Entry {
  std::uint32_t tag, type, count, value;
};

// A directory right behind the header; nothing behind it but `rest`.
File directory_of(const std::vector<Entry>& entries, const std::string& rest = "") {
  std::string text = "II*\0"s + tiff_number(8) + tiff_number(static_cast<std::uint32_t>(entries.size()), 2);
  for (const Entry& entry : entries)
    text +=
        tiff_number(entry.tag, 2) + tiff_number(entry.type, 2) + tiff_number(entry.count) + tiff_number(entry.value);
  return file_of(text + tiff_number(0) + rest);
}

TEST_CASE("a TIFF's pixels are the same in strips and tiles, planes and every compression", "[backend]") {
  for (const std::uint32_t channels : {1U, 2U, 3U, 4U}) {
    const Pixels pixels = make_pixels(45, 37, channels, channels);
    const std::uint32_t kept = channels < 3 ? 1 : 3;
    for (const int compression : {1, 5, 8, 32773}) {
      for (const bool tiled : {false, true}) {
        CAPTURE(channels, compression, tiled);
        const TiffSpec spec{
            .pixels = pixels, .compression = compression, .tiled = tiled, .planes = channels == 3 && compression == 5};

        REQUIRE(decoded(decode_tiff, make_tiff(spec), {45, 37}, static_cast<int>(kept)) == samples_of(pixels, kept));
      }
    }
  }
}

// A grey picture, 3 x 4 pixels, in strips of `rows` rows with this PackBits in each.
File packed_strips(std::uint32_t rows, const std::vector<std::string>& strips) {
  constexpr std::uint32_t kEntries = 9;
  const std::uint32_t begin = 8 + 2 + 12 * kEntries + 4;
  const auto count = static_cast<std::uint32_t>(strips.size());
  std::string places, lengths, data;
  for (const std::string& strip : strips) {
    places += tiff_number(begin + 8 * count + static_cast<std::uint32_t>(data.size()));
    lengths += tiff_number(static_cast<std::uint32_t>(strip.size()));
    data += strip;
  }
  const bool is_one = count == 1;  // then its place and length are in the directory
  return directory_of({{256, 3, 1, 3},
                       {257, 3, 1, 4},
                       {258, 3, 1, 8},
                       {259, 3, 1, 32773},
                       {262, 3, 1, 1},
                       {273, 4, count, is_one ? begin + 8 : begin},
                       {277, 3, 1, 1},
                       {278, 3, 1, rows},
                       {279, 4, count, is_one ? static_cast<std::uint32_t>(data.size()) : begin + 4 * count}},
                      places + lengths + data);
}

TEST_CASE("runs of PackBits go across a TIFF's rows, and not across its strips", "[backend]") {
  const std::vector<int> pixels{7, 7, 7, 7, 7, 7, 7, 7, 1, 2, 3, 4};

  const File one = packed_strips(4, {"\xF9\x07\x03\1\2\3\4"s});
  REQUIRE(decoded(decode_tiff, one, {3, 4}, 1) == pixels);
  REQUIRE(decoded(decode_tiff, packed_strips(9, {"\xF9\x07\x03\1\2\3\4"s}), {3, 4}, 1) == pixels);
  REQUIRE(decoded(decode_tiff, packed_strips(2, {"\xFB\x07"s, "\xFF\x07\x80\x03\1\2\3\4"s}), {3, 4}, 1) == pixels);
  REQUIRE(decoded(decode_tiff, packed_strips(3, {"\xF9\x07\x00\1"s, "\x02\2\3\4\4"s}), {3, 4}, 1) == pixels);
  std::mt19937 random(1);
  check_boxes(decode_tiff, one, {3, 4}, random);

  REQUIRE_THAT(decoding_refused(decode_tiff, packed_strips(4, {"\xF9\x07\x03\1\2\3"s}), {3, 4}),
               Catch::Contains("Not enough data"));
  REQUIRE_THAT(decoding_refused(decode_tiff, packed_strips(2, {"\xFB\x07\xFF\x07"s, "\x03\1\2\3\4"s}), {3, 4}),
               Catch::Contains("Not enough data"));
}

TEST_CASE("16-bit colour of a TIFF keeps its upper byte, grey is cut off at 255", "[backend]") {
  const Pixels colour = make_pixels(20, 10, 3, 1), grey = make_pixels(20, 10, 1, 1);

  REQUIRE(decoded(decode_tiff, make_tiff({.pixels = colour, .bit_depth = 16}), {20, 10}, 3) == samples_of(colour, 3));
  REQUIRE(decoded(decode_tiff, make_tiff({.pixels = grey, .bit_depth = 16}), {20, 10}, 1) ==
          std::vector<int>(200, 255));
}

// One row of samples of so many bits; a colour map of colours 3, 2, 1; 6, 5, 4; ...
File in_one_row(int bits, std::uint32_t width, std::uint32_t photometric, const std::string& data) {
  std::string map;
  for (const int first : {3, 2, 1}) {
    for (int i = 0; i < 1 << bits; ++i) map += tiff_number(static_cast<std::uint32_t>(first + 3 * i) << 8U, 2);
  }
  constexpr std::uint32_t kDataAt = 8 + 2 + 12 * 9 + 4;
  const auto size = static_cast<std::uint32_t>(data.size());
  return directory_of({{256, 3, 1, width},
                       {257, 3, 1, 1},
                       {258, 3, 1, static_cast<std::uint32_t>(bits)},
                       {259, 3, 1, 1},
                       {262, 3, 1, photometric},
                       {273, 4, 1, kDataAt},
                       {278, 3, 1, 1},
                       {279, 4, 1, size},
                       {320, 3, std::uint32_t{3} << bits, kDataAt + size}},
                      data + map);
}

TEST_CASE("indices of a TIFF are its palette's numbers, or its grey", "[backend]") {
  constexpr DecodeFunction kIndices = indices_by<decode_tiff>;
  std::mt19937 random(1);

  REQUIRE(decoded(decode_tiff, in_one_row(4, 2, 3, "\x2F"), {2, 1}, 3) == std::vector{9, 8, 7, 48, 47, 46});
  REQUIRE(decoded(kIndices, in_one_row(1, 3, 3, "\xA0"), {3, 1}, 1) == std::vector{1, 0, 1});
  REQUIRE(decoded(kIndices, in_one_row(2, 4, 3, "\x1B"), {4, 1}, 1) == std::vector{0, 1, 2, 3});
  REQUIRE(decoded(kIndices, in_one_row(4, 2, 3, "\x2F"), {2, 1}, 1) == std::vector{2, 15});
  REQUIRE(decoded(kIndices, in_one_row(8, 2, 3, "\x02\xFE"), {2, 1}, 1) == std::vector{2, 254});
  REQUIRE(decoded(kIndices, in_one_row(8, 2, 0, "\x02\xFE"), {2, 1}, 1) == std::vector{253, 1});  // white is zero
  REQUIRE(decoded(kIndices, in_one_row(8, 2, 1, "\x02\xFE"), {2, 1}, 1) == std::vector{2, 254});
  check_boxes(kIndices, in_one_row(2, 4, 3, "\x1B"), {4, 1}, random);
  for (const int compression : {1, 5, 8, 32773}) {
    for (const bool tiled : {false, true}) {
      const Pixels pixels = make_pixels(45, 37, 1, 2);
      const File file = make_tiff({.pixels = pixels, .compression = compression, .tiled = tiled});

      REQUIRE(decoded(kIndices, file, {45, 37}, 1) == samples_of(pixels, 1));
      check_boxes(kIndices, file, {45, 37}, random);
    }
  }
}

TEST_CASE("a TIFF in colour, with transparency or JPEG, of 1 or 16 bits of grey, has no indices", "[backend]") {
  const auto told = [](const File& file) { return decoding_refused(indices_by<decode_tiff>, file, {20, 1}); };
  const auto of = [](std::uint32_t channels) { return make_pixels(20, 1, channels, 1); };

  for (const std::uint32_t channels : {3U, 4U})
    REQUIRE(told(make_tiff({.pixels = of(channels)})).starts_with("has no indices (recipe.indices): store it as "));
  REQUIRE(told(make_tiff({.pixels = of(2)})) ==
          "a TIFF with transparency, of which no indices are read: store it without");
  REQUIRE(told(make_tiff({.pixels = of(1), .compression = 7})) ==
          "a TIFF with JPEG in it, whose levels are not exact: make it anew, as LZW or Deflate");
  REQUIRE(told(make_tiff({.pixels = of(1), .bit_depth = 16})) ==
          "a grey TIFF of 16 bits, whose levels are no indices: store it in 8 bits, or with a palette");
  for (const std::uint32_t photometric : {0U, 1U})
    REQUIRE(told(in_one_row(1, 20, photometric, "\x12\x34\x50")) ==
            "a grey TIFF of 1 bit, whose levels are no indices: store it in 8 bits, or with a palette");
}

TEST_CASE("any box of a TIFF has the pixels of the whole", "[backend]") {
  std::mt19937 random(1);
  const Pixels pixels = make_pixels(75, 53, 3, 1);
  for (const TiffSpec& spec :
       {TiffSpec{.pixels = pixels}, TiffSpec{.pixels = pixels, .compression = 5, .tiled = true},
        TiffSpec{.pixels = pixels, .compression = 7}, TiffSpec{.pixels = pixels, .compression = 7, .tiled = true},
        TiffSpec{.pixels = make_pixels(75, 53, 4, 1), .inks = true, .compression = 8},
        TiffSpec{.pixels = pixels, .bit_depth = 16, .planes = true}}) {
    CAPTURE(spec.compression, spec.tiled, spec.inks);

    check_boxes(decode_tiff, make_tiff(spec), {75, 53}, random);
  }
}

TEST_CASE("a TIFF's orientation is that of its directory", "[backend]") {
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const File file = make_tiff({.pixels = make_pixels(7, 5, 3, 1), .orientation = orientation});

    REQUIRE(tiff_probed(file).orientation == orientation);
    REQUIRE(tiff_probed(file).stored == Size{7, 5});
  }
}

TEST_CASE("a TIFF that lacks a byte, or whose codes are broken, is an error for every box, with libtiff's words",
          "[backend]") {
  const Pixels pixels = make_pixels(40, 40, 3, 1);
  const File whole = make_tiff({.pixels = pixels});
  File damaged = make_tiff({.pixels = pixels, .compression = 8});
  damaged[8] ^= std::byte{0xFF};
  const File tail = directory_of(
      {{256, 3, 1, 40}, {257, 3, 1, 40}, {258, 3, 1, 8}, {262, 3, 1, 1}, {273, 4, 1, 60}, {279, 4, 1, 1600}});

  REQUIRE(decoding_refused(decode_tiff, damaged, {40, 40}).starts_with("damaged TIFF: "));
  REQUIRE(decoding_refused(decode_tiff, tail, {40, 40}).starts_with("damaged TIFF: "));
  REQUIRE(decoding_refused(decode_tiff, whole, {40, 39}) ==
          "the decoder finds 40x40 pixels where the header says 40x39");
}

TEST_CASE("kinds of TIFF that are not decoded are refused by name", "[backend]") {
  const auto unsupported = [](std::uint32_t tag, std::uint32_t value) {
    std::vector<Entry> entries{{256, 3, 1, 2}, {257, 3, 1, 2}, {258, 3, 1, 8}, {259, 3, 1, 1},
                               {262, 3, 1, 1}, {273, 4, 1, 8}, {279, 4, 1, 4}};
    for (Entry& entry : entries) {
      if (entry.tag == tag) entry.value = value;
    }
    if (tag == 339) entries.push_back({339, 3, 1, value});
    const File file = directory_of(entries, "abcd");
    PixelBuffer buffer;
    const Result<kernels::U8View> part = decode_tiff(request_of(file, {2, 2}, {0, 0, 1, 1}), buffer);
    REQUIRE_FALSE(part);
    REQUIRE(part.error().code == Code::kUnsupported);
    return part.error().message;
  };
  const std::string not_decoded = "this kind of TIFF is not decoded here: ";

  REQUIRE(unsupported(259, 34712) == not_decoded + "compression 34712; write it as LZW or Deflate");
  REQUIRE(unsupported(258, 32) == not_decoded + "1 samples a pixel of 32 bits, photometric interpretation 1");
  REQUIRE(unsupported(262, 8) == not_decoded + "1 samples a pixel of 8 bits, photometric interpretation 8");
  REQUIRE(unsupported(339, 3) ==
          not_decoded + "1 samples a pixel of 8 bits, photometric interpretation 1, sample format 3");
}

TEST_CASE("decoding a TIFF stops at the deadline", "[backend]") {
  REQUIRE(code_when_late(decode_tiff, make_tiff({.pixels = make_pixels(64, 64, 3, 1)}), {64, 64}) == Code::kDeadline);
  REQUIRE(code_when_late(decode_tiff, make_tiff({.pixels = make_pixels(64, 64, 3, 1), .tiled = true}), {64, 64}) ==
          Code::kDeadline);
}

// A grey or colour picture of one tile with this in it.
File one_tile(std::uint32_t compression, std::uint32_t bits, std::uint32_t channels, std::uint32_t side,
              const std::string& data) {
  constexpr std::uint32_t kEntries = 10;
  const std::uint32_t begin = 8 + 2 + 12 * kEntries + 4;
  const std::string depths = tiff_number(bits, 2) + tiff_number(bits, 2) + tiff_number(bits, 2) + tiff_number(0, 2);
  return directory_of({{256, 3, 1, side},
                       {257, 3, 1, side},
                       {258, 3, channels, channels == 1 ? bits : begin},
                       {259, 3, 1, compression},
                       {262, 3, 1, channels == 1 ? 1U : 6U},
                       {277, 3, 1, channels},
                       {322, 3, 1, side},
                       {323, 3, 1, side},
                       {324, 4, 1, begin + 8},
                       {325, 4, 1, static_cast<std::uint32_t>(data.size())}},
                      depths + data);
}

TEST_CASE("what a TIFF's tile has no data for is black, and nothing of the heap's", "[backend]") {
  std::string jpeg;
  for (const std::byte byte : make_jpeg({.pixels = make_pixels(32, 16, 3, 1)})) jpeg += static_cast<char>(byte);
  const std::string stored = "\x78\x01\x01\x90\x01\x6F\xFE"s + std::string(400, 'p');  // more than the tile has

  const std::vector<std::string> small = in_two_heaps(decode_tiff, one_tile(7, 8, 3, 64, jpeg), {64, 64});
  REQUIRE(small[0].size() == std::size_t{64 * 64 * 3});
  REQUIRE(small[0] == small[1]);
  REQUIRE(small[0].substr(small[0].size() - 64 * 3) == std::string(64 * 3, '\0'));
  const std::vector<std::string> deflate = in_two_heaps(decode_tiff, one_tile(8, 8, 1, 16, stored), {16, 16});
  REQUIRE(deflate[0] == deflate[1]);
  const std::vector<std::string> long_deflate = in_two_heaps(decode_tiff, one_tile(32946, 8, 1, 16, stored), {16, 16});
  REQUIRE(long_deflate[0] == long_deflate[1]);
  for (const std::uint32_t fax : {3U, 4U}) {
    const std::vector<std::string> cut = in_two_heaps(decode_tiff, one_tile(fax, 1, 1, 64, "\x26\xA0"s), {64, 64});
    CAPTURE(fax, cut[0]);
    REQUIRE(cut[0] == cut[1]);
  }
}

TEST_CASE("a TIFF whose directory is broken is refused, and says why", "[backend]") {
  const std::string cut = "cut off: the file ends before the first directory of a TIFF";

  REQUIRE(refused(file_of("II*\0"s)) == cut);
  REQUIRE(refused(file_of("II*\0\x40\0\0\0"s)) == cut);
  REQUIRE(refused(file_of("II*\0\x08\0\0\0\1"s)) == cut);
  REQUIRE(refused(file_of("II*\0\x08\0\0\0\1\0"s)) == "cut off: the file ends before the end of a TIFF's directory");
  REQUIRE(refused(file_of("MM\0\x2B\0\x08\0\0"s + std::string("\0\0\0\0\0\0\0\x10\0\0\0\1\0\0\0\0", 16))) ==
          "a broken TIFF: its directory has too many entries");
  REQUIRE(refused(directory_of({{256, 3, 1, 2}})) == "a broken TIFF: its directory does not say how large it is");
  REQUIRE(refused(directory_of({{256, 3, 1, 0}, {257, 3, 1, 2}})) ==
          "its header says 0x2 pixels: there is nothing to decode");
}

TEST_CASE("a TIFF whose palette is missing, cut off or of another length is refused, and is not shown in grey",
          "[backend]") {
  const auto with = [](const Entry& palette) {
    return directory_of(
        {{256, 3, 1, 2}, {257, 3, 1, 2}, {258, 3, 1, 8}, {262, 3, 1, 3}, {273, 4, 1, 8}, {279, 4, 1, 4}, palette},
        std::string(1'536, 'x'));
  };
  const std::uint32_t at = 8 + 2 + 12 * 7 + 4;

  REQUIRE(tiff_probed(with({320, 3, 768, at})).stored == Size{2, 2});
  for (const Entry& palette : {Entry{320, 3, 768, at + 1},
                               {320, 3, 767, at},
                               {320, 3, 769, at - 8},
                               {320, 99, 768, at},
                               {320, 2, 768, at},
                               {320, 11, 384, at},
                               {321, 3, 768, at}})
    CHECK(refused(with(palette)) == "a broken TIFF: its palette is missing, cut off or of another length");
}

TEST_CASE("a TIFF whose values would be read many times over is refused", "[backend]") {
  std::vector<Entry> entries{{256, 3, 1, 2}, {257, 3, 1, 2}};
  for (std::uint32_t tag = 40'000; tag < 40'100; ++tag) entries.push_back({tag, 1, 50'000, 8});

  REQUIRE(refused(directory_of(entries, std::string(50'000, 'x'))) ==
          "a broken TIFF: its directory speaks of more bytes than the file has");
}

TEST_CASE("what a TIFF takes of memory goes by its tiles, its strips and its compression", "[backend]") {
  const auto needed = [](const std::vector<Entry>& more) {
    std::vector<Entry> entries{{256, 3, 1, 100}, {257, 3, 1, 100}, {258, 3, 1, 8}, {277, 3, 1, 3}};
    entries.insert(entries.end(), more.begin(), more.end());
    return tiff_probed(directory_of(entries)).codec;
  };

  REQUIRE(needed({}).at_most < 3_MiB);
  REQUIRE(needed({{322, 3, 1, 4096}, {323, 3, 1, 4096}}).needed > 48_MiB);
  REQUIRE(needed({{278, 3, 1, 1}}).needed - needed({}).needed >= Bytes{99 * 40});
  REQUIRE(needed({{259, 3, 1, 7}}).at_most > 100_MiB);
  const std::vector<Entry> large{{256, 3, 1, 4000}, {257, 3, 1, 4000}, {258, 3, 1, 8}, {277, 3, 1, 3}};
  const auto packed = [&](std::uint32_t rows) {
    std::vector<Entry> entries = large;
    entries.insert(entries.end(), {{259, 3, 1, 32773}, {278, 4, 1, rows}});
    return tiff_probed(directory_of(entries)).codec.needed;
  };
  REQUIRE(packed(4000) - packed(1) >= Bytes{3999 * 12'000 - 3999 * 40});
  REQUIRE(packed(0xFFFFFFFF) == packed(4000));
}

}  // namespace
}  // namespace millrace
