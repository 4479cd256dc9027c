// Which PNG files are pictures: Pillow's verdict on damage, oddities and what follows the rows.
#include <zlib.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <memory>
#include <optional>

#include "daemon/backend/cpu/decoders/png/png_decoder.h"
#include "proto/base/sanitized.h"
#include "tests/support/host/limited_memory.h"
#include "tests/support/pictures/png_file.h"
#include "tests/support/pictures/test_images.h"
#include "tests/support/skip.h"

namespace millrace {

using File = std::vector<std::byte>;

namespace {

using namespace std::string_literals;
using Parts = std::vector<PngPart>;

constexpr kernels::Size kPngSize{40, 30};
constexpr kernels::Box kWhole{0, 0, 40, 30}, kCorner{0, 0, 1, 1};

// Empty: it is a picture. Else why not.
std::string verdict(const File& file, const kernels::Box& box = kCorner, kernels::Size size = kPngSize) {
  PixelBuffer buffer;
  const Result<kernels::U8View> part = decode_png({file, size, box, Clock::now() + std::chrono::minutes(5)}, buffer);
  if (part) return "";
  REQUIRE((part.error().code == Code::kInvalid && !part.error().message.empty()));
  return part.error().message;
}

std::vector<int> row_of(const File& file, kernels::Size size) {
  PixelBuffer buffer;
  const Result<kernels::U8View> row =
      decode_png({file, size, {0, 0, size.width, 1}, Clock::now() + std::chrono::minutes(5)}, buffer);
  REQUIRE(row);
  return {row->row(0), row->row(0) + size.width * row->channels};
}

File photograph() {
  return make_png({.pixels = make_pixels(40, 30, 3, 1)});
}

std::string image_data(const Parts& parts) {
  std::string data;
  for (const PngPart& part : parts) data += part.type == "IDAT" ? part.data : "";
  return data;
}

// Whether Pillow's decoder has all 30 rows of 121 bytes after these pieces of image data: it asks zlib for a row at a
// time as long as a piece lasts, takes no errors, and stops after the last row.
bool has_all_rows(const std::vector<std::string>& pieces) {
  z_stream stream{};
  REQUIRE(inflateInit(&stream) == Z_OK);
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, inflateEnd);
  Bytef row[121];
  std::size_t have = 0;
  int rows = 0;
  for (const std::string& piece : pieces) {
    stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(piece.data()));
    stream.avail_in = static_cast<uInt>(piece.size());
    while (stream.avail_in > 0) {
      stream.next_out = row + have;
      stream.avail_out = static_cast<uInt>(sizeof row - have);
      const int status = inflate(&stream, Z_NO_FLUSH);
      if (status < 0) return false;
      have = sizeof row - stream.avail_out;
      if (have < sizeof row) break;
      if (row[0] > 4) return false;  // no such filter
      have = 0;
      if (++rows == 30) return true;
      if (status == Z_STREAM_END) return false;
    }
  }
  return false;
}

// The picture with other image data, `piece` bytes a chunk (0: all), and `behind` before IEND.
File with_image_data(const File& png, const std::string& data, std::size_t piece = 0, const Parts& behind = {}) {
  Parts parts;
  for (const PngPart& part : parts_of(png)) {
    if (part.type != "IDAT" && part.type != "IEND") parts.push_back(part);
  }
  if (piece == 0) piece = data.size();
  for (std::size_t at = 0; at < data.size(); at += piece) parts.push_back({"IDAT", data.substr(at, piece)});
  parts.insert(parts.end(), behind.begin(), behind.end());
  parts.push_back({"IEND", ""});
  return make_png_of(parts);
}

File with_chunk(const File& png, std::size_t at, const PngPart& part) {
  Parts parts = parts_of(png);
  parts.insert(parts.begin() + static_cast<std::ptrdiff_t>(at), part);
  return make_png_of(parts);
}

File without_end(File file, std::size_t bytes) {
  file.resize(file.size() - bytes);
  return file;
}

}  // namespace

TEST_CASE("a flipped bit in the image data of a PNG is an error where Pillow finds one, whatever the box",
          "[backend]") {
  const File png = photograph();
  const std::string data = image_data(parts_of(png));
  int refused = 0;
  for (std::size_t bit = 0; bit < data.size() * 8; bit += bit / 8 + 12 < data.size() ? 23 : 1) {
    std::string flipped = data;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
    const bool expected = has_all_rows({flipped});

    CAPTURE(bit, data.size());
    REQUIRE((verdict(with_image_data(png, flipped)) == "") == expected);
    refused += expected ? 0 : 1;
  }
  REQUIRE(refused > 800);
}

TEST_CASE("a PNG whose data is cut off has its rows where Pillow gets them", "[backend]") {
  int refused = 0;
  for (const std::uint32_t seed : {1U, 2U}) {
    const File png = make_png({.pixels = make_pixels(40, 30, 3, seed)});
    for (const std::string& data : {image_data(parts_of(png)), deflated(std::string(30 * 121, '\0'))}) {
      for (std::size_t cut = 0; cut < std::min<std::size_t>(data.size(), 40); ++cut) {
        for (const std::size_t piece : {1U, 3U, 16U, 1000U}) {
          const std::string part = data.substr(0, data.size() - cut);
          std::vector<std::string> pieces;
          for (std::size_t at = 0; at < part.size(); at += piece) pieces.push_back(part.substr(at, piece));
          const bool expected = has_all_rows(pieces);

          CAPTURE(cut, piece, data.size());
          REQUIRE((verdict(with_image_data(png, part, piece)) == "") == expected);
          refused += expected ? 0 : 1;
        }
      }
    }
  }
  REQUIRE((refused > 100 && refused < 500));
}

TEST_CASE("a wrong Adler-32 counts in the piece of a PNG that the last row ends in, as in Pillow", "[backend]") {
  const File png = photograph();
  std::string data = image_data(parts_of(png));
  data.back() = static_cast<char>(data.back() ^ 1);
  const std::string rows = data.substr(0, data.size() - 4), checksum = data.substr(data.size() - 4);

  REQUIRE(verdict(with_image_data(png, data)) == "damaged PNG: the checksum of its image data is wrong");
  REQUIRE(verdict(with_image_data(png, data), kWhole) != "");
  REQUIRE(verdict(with_image_data(png, rows, 0, {{"IDAT", checksum}})) == "");
  REQUIRE(verdict(with_image_data(png, rows)) == "");
}

TEST_CASE("data behind the last row of a PNG is not looked at", "[backend]") {
  const File png = photograph();
  const std::string data = image_data(parts_of(png));

  REQUIRE(verdict(with_image_data(png, data + "and more")) == "");
  REQUIRE(verdict(with_image_data(png, data, 0, {{"IDAT", "another"}, {"IDAT", ""}})) == "");
  REQUIRE(verdict(with_image_data(png, deflated(std::string(30 * 121, '\0') + "rows beyond"))) == "");
}

TEST_CASE("a PNG's image data may come in chunks of any size", "[backend]") {
  const File png = photograph();
  const std::string data = image_data(parts_of(png));
  const std::vector<int> expected = row_of(png, kPngSize);

  for (const std::size_t piece : {1U, 2U, 7U, 100U, 1000U}) {
    CAPTURE(piece);
    REQUIRE(row_of(with_image_data(png, data, piece), kPngSize) == expected);
    REQUIRE(verdict(with_image_data(png, data, piece, {{"tEXt", "a"}}), kWhole) == "");
  }
  REQUIRE(verdict(with_image_data(png, data.substr(0, 50), 0, {{"DDAT", data.substr(50)}})) == "");
  REQUIRE(verdict(with_image_data(png, data.substr(0, 50), 0, {{"tEXt", "a"}, {"IDAT", data.substr(50)}})) ==
          "truncated PNG: the image data ends before the image does");
}

TEST_CASE("a PNG is cut off where its data is used up, even if zlib holds its last rows", "[backend]") {
  const std::string flat(30 * 121, '\0');
  const File png = with_image_data(photograph(), deflated(flat));
  const std::string data = deflated(flat);

  REQUIRE(verdict(with_image_data(png, data.substr(0, data.size() - 4))) == "");
  REQUIRE(verdict(with_image_data(png, data.substr(0, data.size() - 6))) ==
          "truncated PNG: the image data ends before the image does");
}

TEST_CASE("a PNG may end between chunks behind its rows, but not inside one", "[backend]") {
  const File png = photograph();
  const std::string data = image_data(parts_of(png));
  const File with_text = with_image_data(png, data, 0, {{"tEXt", "Comment\0text"s}});
  const File with_tail = with_image_data(png, data, 0, {{"IDAT", "12345678"}});

  for (const std::size_t cut : {1U, 4U, 12U, 15U, 16U, 28U + 12U}) REQUIRE(verdict(without_end(with_text, cut)) == "");
  for (const File& file : {without_end(with_text, 12 + 5), without_end(with_tail, 12 + 5)})
    REQUIRE(verdict(file) == "truncated PNG: the file ends in a chunk behind the image data");
}

TEST_CASE("bytes that are no chunk, and wrong checksums, end or pass the walk behind a PNG's rows", "[backend]") {
  const File png = photograph();
  const std::string data = image_data(parts_of(png));
  File bad_checksum = with_image_data(png, data, 0, {{"tEXt", "a"}});
  bad_checksum[bad_checksum.size() - 13] ^= std::byte{1};
  File no_name = with_image_data(png, data, 0, {{"t+Xt", ""}, {"gAMA", ""}});

  REQUIRE(verdict(bad_checksum) == "");
  REQUIRE(verdict(no_name) == "");
}

TEST_CASE("a PNG without rows that its data ends without is an error here, black in Pillow", "[backend]") {
  const File png = photograph();

  REQUIRE(verdict(with_image_data(png, deflated(std::string(20 * 121, '\0')))) ==
          "truncated PNG: the image data ends before the image does");
}

TEST_CASE("chunks that Pillow finds too short make a PNG damaged, before its image data and behind", "[backend]") {
  const File png = photograph();
  const PngPart chunks[] = {
      {"gAMA", "123"},  {"cHRM", std::string(31, 'x')}, {"sRGB", ""},          {"pHYs", "12345678"},
      {"acTL", "1234"}, {"fcTL", std::string(25, 0)},   {"tRNS", "12345"},     {"IHDR", "123"},
      {"iCCP", "name"}, {"iCCP", "name\0\1data"s},      {"zTXt", "k\0\1data"s}};
  const std::size_t behind = parts_of(png).size() - 1;
  for (const PngPart& part : chunks) {
    CAPTURE(part.type);
    REQUIRE(verdict(with_chunk(png, 1, part)).starts_with("damaged PNG: "));
    REQUIRE(verdict(with_chunk(png, behind, part)).starts_with("damaged PNG: "));
  }
  for (const PngPart& part :
       {PngPart{"tRNS", "123456"}, PngPart{"zTXt", "k"}, PngPart{"ab1_", ""}, PngPart{"eXIf", ""}})
    REQUIRE(verdict(with_chunk(png, 1, part)) == "");
}

TEST_CASE("a PNG's header may stand behind other chunks, be too long, or have an unknown compression", "[backend]") {
  const File png = photograph();
  Parts parts = parts_of(png);
  const std::vector<int> expected = row_of(png, kPngSize);
  Parts text_first = parts, longer = parts, other_method = parts;
  text_first.insert(text_first.begin(), {"tEXt", "a"});
  longer[0].data += "and more";
  other_method[0].data[10] = 1;

  for (const Parts& odd : {text_first, longer, other_method}) REQUIRE(row_of(make_png_of(odd), kPngSize) == expected);
}

TEST_CASE("a PNG's header that makes no sense is an error", "[backend]") {
  const File png = photograph();
  Parts twice = parts_of(png), other_filter = twice, depth_3 = twice, colour_5 = twice, missing = twice;
  twice.insert(twice.begin(), twice[0]);
  other_filter[0].data[11] = 1;
  depth_3[0].data[8] = 3;
  colour_5[0].data[9] = 5;
  missing.erase(missing.begin());

  REQUIRE(verdict(make_png_of(twice)) == "damaged PNG: it has two IHDR chunks");
  REQUIRE(verdict(make_png_of(other_filter)) == "damaged PNG: its filter method is unknown");
  for (const Parts& odd : {depth_3, colour_5})
    REQUIRE(verdict(make_png_of(odd)) == "damaged PNG: its bit depth and colour type do not go together");
  REQUIRE(verdict(make_png_of(missing)) == "damaged PNG: it has no IHDR chunk");
}

TEST_CASE("colours that a PNG's palette does not have are black, and those beyond its depth do not matter",
          "[backend]") {
  const auto picture = [](const std::optional<std::string>& palette) {
    Parts parts{{"IHDR", png_header(2, 1, 4, 3)}};
    if (palette) parts.push_back({"PLTE", *palette});
    parts.push_back({"IDAT", deflated("\0\x01"s)});
    parts.push_back({"IEND", ""});
    return make_png_of(parts);
  };
  const kernels::Size size{2, 1};
  const std::vector<int> black(6, 0);

  REQUIRE(row_of(picture(std::nullopt), size) == black);
  REQUIRE(row_of(picture(""), size) == black);
  REQUIRE(row_of(picture("\x01\x02\x03\x04\x05"), size) == std::vector<int>{1, 2, 3, 0, 0, 0});
  REQUIRE(row_of(picture(std::string(3 * 256 + 2, '\x07')), size) == std::vector<int>(6, 7));
  REQUIRE(verdict(picture(std::string(3 * 257, '\x07')), kCorner, size) ==
          "damaged PNG: its palette has more than 256 colours");
}

TEST_CASE("an animated PNG's chunks must be in order, and its first frame the whole picture", "[backend]") {
  const File png = photograph();
  const auto frame = [](unsigned number, unsigned width, unsigned left) {
    return PngPart{"fcTL", big_endian({number, width, 30, left, 0}) + std::string(6, 0)};
  };
  const PngPart animation{"acTL", big_endian({2, 0})};
  const auto animated = [&](const PngPart& first, const Parts& behind) {
    return with_image_data(with_chunk(with_chunk(png, 1, first), 1, animation), image_data(parts_of(png)), 0, behind);
  };
  const PngPart second{"fdAT", big_endian({2}) + "data"};

  REQUIRE(verdict(animated(frame(0, 40, 0), {frame(1, 40, 0), second})) == "");
  REQUIRE(verdict(animated(frame(0, 40, 0), {frame(7, 99, 0), {"gAMA", ""}})) == "");  // behind the first frame
  REQUIRE(verdict(animated(frame(0, 39, 0), {})) == "damaged PNG: its first frame is smaller than the picture");
  REQUIRE(verdict(animated(frame(0, 40, 1), {})) == "damaged PNG: a frame of its animation lies outside the picture");
  REQUIRE(verdict(animated(frame(1, 40, 0), {})) == "damaged PNG: its animation's chunks are out of order");
  REQUIRE(verdict(animated(frame(0, 40, 0), {{"fdAT", big_endian({2})}})) ==
          "damaged PNG: its animation's chunks are out of order");
  REQUIRE(verdict(with_chunk(png, 1, {"fdAT", big_endian({1})})) ==
          "damaged PNG: data of another frame comes before the image data");
}

TEST_CASE("texts and profiles of a PNG may be as long as they like", "[backend]") {
  const File png = photograph();
  const std::string bomb = deflated(std::string(2 << 20, 'x'), 9);

  REQUIRE(verdict(with_chunk(png, 1, {"zTXt", "k\0\0"s + bomb})) == "");
  REQUIRE(verdict(with_chunk(png, 1, {"iTXt", "k\0\1\0\0\0"s + bomb})) == "");
  REQUIRE(verdict(with_chunk(png, 1, {"iCCP", "k\0\0"s + bomb})) == "");
}

TEST_CASE("any interlaced or shallow PNG decodes row by row out of single bytes", "[backend]") {
  for (const unsigned interlace : {0U, 1U}) {
    for (unsigned width = 1; width <= 9; ++width) {
      // One bit a pixel; seven passes of it for an interlaced picture (PNG 8.2), all with filter 0 and white.
      std::string rows;
      const unsigned left[] = {0, 4, 0, 2, 0, 1, 0}, top[] = {0, 0, 4, 0, 2, 0, 1}, across[] = {8, 8, 4, 4, 2, 2, 1},
                     down[] = {8, 8, 8, 4, 4, 2, 2};
      for (int pass = 0; pass < 7 && interlace == 1; ++pass) {
        for (unsigned y = top[pass]; y < 9 && width > left[pass]; y += down[pass])
          rows += '\0' + std::string(((width - left[pass] - 1) / across[pass] + 8) / 8, '\xFF');
      }
      for (unsigned y = 0; y < 9 && interlace == 0; ++y) rows += '\0' + std::string((width + 7) / 8, '\xFF');
      Parts parts{{"IHDR", png_header(width, 9, 1, 0, interlace)}};
      for (const char byte : deflated(rows)) parts.push_back({"IDAT", std::string(1, byte)});
      parts.push_back({"IEND", ""});
      const kernels::Size size{static_cast<int>(width), 9};

      CAPTURE(interlace, width);
      REQUIRE(row_of(make_png_of(parts), size) == std::vector<int>(width, 255));
      parts.erase(parts.end() - 7, parts.end() - 1);  // the Adler-32 and what the last row needs
      REQUIRE(verdict(make_png_of(parts), kCorner, size) != "");
    }
  }
}

TEST_CASE("decoding a PNG takes no memory for its chunks", "[backend]") {
  if (kSanitized) return skip_loudly("a decoder short of memory: a sanitizer needs memory of its own");
  const File png = photograph();
  const File head(png.begin(), png.begin() + 33), tail(png.begin() + 33, png.end());
  const File empty = make_png_of({{"IDAT", ""}});
  File many = head;
  for (int i = 0; i < 2'000'000; ++i) many.insert(many.end(), empty.begin() + 8, empty.end());
  many.insert(many.end(), tail.begin(), tail.end());

  const int picture = with_limited_memory(std::size_t{8} << 20, [&] {
    PixelBuffer buffer;
    return decode_png({many, kPngSize, kWhole, Clock::now() + std::chrono::minutes(5)}, buffer) ? 1 : 2;
  });

  REQUIRE(parts_of(head).size() == 1);
  REQUIRE(picture == 1);
}

TEST_CASE("a PNG for which there is no memory is never called damaged", "[backend]") {
  if (kSanitized) return skip_loudly("a decoder short of memory: a sanitizer needs memory of its own");
  const File png = make_png({.pixels = make_pixels(700, 500, 3, 1)});
  const kernels::Size size{700, 500};
  std::vector<int> seen;
  for (std::size_t room = 0; room <= std::size_t{2} << 20; room += std::size_t{8} << 10) {
    seen.push_back(with_limited_memory(room, [&] {
      PixelBuffer buffer;
      const auto pixels = decode_png({png, size, {0, 0, 700, 500}, Clock::now() + std::chrono::minutes(5)}, buffer);
      return pixels ? 1 : pixels.error().code == Code::kExhausted ? 2 : 3;
    }));
  }

  REQUIRE(seen.front() == 2);
  REQUIRE(seen.back() == 1);
  REQUIRE(std::count_if(seen.begin(), seen.end(), [](int code) { return code != 1 && code != 2; }) == 0);
}

}  // namespace millrace
