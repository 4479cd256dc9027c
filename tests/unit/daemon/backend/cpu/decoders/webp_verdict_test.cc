// Which WebP files are pictures: libwebp's and its demultiplexer's verdict, whatever the box and however little memory.
#include <webp/demux.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <memory>
#include <random>

#include "daemon/backend/cpu/decoders/webp_decoder.h"
#include "daemon/backend/cpu/decoders/webp_frame.h"
#include "proto/base/sanitized.h"
#include "tests/support/host/limited_memory.h"
#include "tests/support/pictures/test_images.h"
#include "tests/support/skip.h"

namespace millrace {

using File = std::vector<std::byte>;

namespace {

constexpr kernels::Size kWebpSize{120, 90};
constexpr std::size_t kRiffHeader = 12, kChunkHeader = 8;

File picture(std::uint32_t channels, bool lossless, int orientation = 0) {
  return make_webp(
      {.pixels = make_pixels(120, 90, channels, 1), .lossless = lossless, .exif_orientation = orientation});
}

Result<kernels::U8View> decode(const File& file, const kernels::Box& box, PixelBuffer& buffer) {
  return decode_webp({file, kWebpSize, box, Clock::now() + std::chrono::minutes(5)}, buffer);
}

void put_length(File& file, std::size_t at, std::size_t length) {
  for (std::size_t i = 0; i < 4; ++i) file[at + i] = static_cast<std::byte>(length >> 8 * i);
}

File webp_chunk(std::string_view type, const File& data) {
  File bytes(kChunkHeader);
  std::copy(type.begin(), type.end(), reinterpret_cast<char*>(bytes.data()));
  put_length(bytes, 4, data.size());
  bytes.insert(bytes.end(), data.begin(), data.end());
  if (data.size() % 2 == 1) bytes.push_back({});
  return bytes;
}

File riff(const std::vector<File>& chunks) {
  File file(kRiffHeader);
  std::copy_n("RIFF----WEBP", kRiffHeader, reinterpret_cast<char*>(file.data()));
  for (const File& bytes : chunks) file.insert(file.end(), bytes.begin(), bytes.end());
  put_length(file, 4, file.size() - kChunkHeader);
  return file;
}

// The chunks of a file that is whole, headers and all.
std::vector<File> chunks_of(const File& file) {
  std::vector<File> chunks;
  for (std::size_t at = kRiffHeader; at + kChunkHeader <= file.size();) {
    std::size_t length = 0;
    for (std::size_t i = 4; i > 0; --i) length = length << 8 | std::to_integer<std::size_t>(file[at + 3 + i]);
    const std::size_t end = at + kChunkHeader + length + length % 2;
    chunks.emplace_back(file.begin() + static_cast<std::ptrdiff_t>(at),
                        file.begin() + static_cast<std::ptrdiff_t>(end));
    at = end;
  }
  return chunks;
}

// A picture whose only chunk of image data ends after so much of it, in a file that is whole as chunks go.
File with_less_data(const File& file, double part) {
  const File whole = chunks_of(file).at(0);
  const std::string type(reinterpret_cast<const char*>(whole.data()), 4);
  const auto length = static_cast<std::ptrdiff_t>(static_cast<double>(whole.size() - kChunkHeader) * part);
  return riff({webp_chunk(type, File(whole.begin() + kChunkHeader, whole.begin() + kChunkHeader + length))});
}

File extended(std::uint8_t flags, const std::vector<File>& chunks) {
  File header(10);
  header[0] = std::byte{flags};
  header[4] = std::byte{kWebpSize.width - 1};
  header[7] = std::byte{kWebpSize.height - 1};
  std::vector<File> all{webp_chunk("VP8X", header)};
  all.insert(all.end(), chunks.begin(), chunks.end());
  return riff(all);
}

File animation_frame(std::uint8_t left, const std::vector<File>& chunks) {
  File data(16);
  data[0] = std::byte{left};
  data[6] = data[9] = std::byte{9};
  for (const File& bytes : chunks) data.insert(data.end(), bytes.begin(), bytes.end());
  return webp_chunk("ANMF", data);
}

// The same frame, or none, as libwebp's demultiplexer finds.
void check_against_demux(const File& file) {
  const WebPData data{reinterpret_cast<const std::uint8_t*>(file.data()), file.size()};
  const std::unique_ptr<WebPDemuxer, void (*)(WebPDemuxer*)> demux(WebPDemux(&data), WebPDemuxDelete);
  WebPIterator expected{};
  const bool has_frame = demux && WebPDemuxGetFrame(demux.get(), 1, &expected) != 0;
  const Result<WebpFrame> frame = first_webp_frame(file);

  REQUIRE(frame.has_value() == has_frame);
  if (!has_frame) return;
  REQUIRE(frame->data.size() == expected.fragment.size);
  REQUIRE(static_cast<const void*>(frame->data.data()) == expected.fragment.bytes);
  REQUIRE(frame->place == kernels::Box{expected.x_offset, expected.y_offset, expected.width, expected.height});
  REQUIRE(frame->canvas.width == static_cast<int>(WebPDemuxGetI(demux.get(), WEBP_FF_CANVAS_WIDTH)));
  REQUIRE(frame->canvas.height == static_cast<int>(WebPDemuxGetI(demux.get(), WEBP_FF_CANVAS_HEIGHT)));
}

std::vector<File> files_of_every_kind() {
  const File lossy = chunks_of(picture(3, false))[0], lossless = chunks_of(picture(3, true))[0];
  const std::vector<File> alpha = chunks_of(picture(4, false));  // VP8X, ALPH, VP8
  const File small = chunks_of(make_webp({.pixels = make_pixels(10, 10, 3, 1)}))[0];
  const File animation = webp_chunk("ANIM", File(6)), unknown = webp_chunk("what", File(5));
  return {picture(3, false),
          picture(3, true),
          picture(4, true),
          picture(4, false),
          picture(3, false, 6),
          riff({lossy, unknown, unknown}),
          riff({lossy, alpha[1], unknown}),
          extended(0x10, {unknown, alpha[1], alpha[2], unknown}),
          extended(0x00, {alpha[1], alpha[2]}),
          extended(0x10, {alpha[1], unknown, alpha[2]}),
          extended(0x00, {unknown, lossless, webp_chunk("EXIF", File(9))}),
          extended(0x00, {lossy, lossy}),
          extended(0x00, {lossy, animation, animation_frame(0, {small})}),
          extended(0x02, {animation, animation_frame(0, {small}), animation_frame(20, {unknown, small}), unknown}),
          extended(0x02, {animation, animation_frame(0, {}), animation_frame(3, {small, unknown, small})}),
          extended(0x02, {animation, animation_frame(200, {small})}),
          extended(0x02, {animation_frame(0, {small})}),
          extended(0x02, {animation, lossy})};
}

}  // namespace

TEST_CASE("image data of a WebP that ends early is an error for boxes above the end, too", "[backend]") {
  PixelBuffer buffer;
  for (const bool lossless : {false, true}) {
    const File file = with_less_data(picture(3, lossless), 0.7);

    const auto top = decode(file, {0, 0, 120, 4}, buffer), whole = decode(file, {0, 0, 120, 90}, buffer);

    CAPTURE(lossless);
    REQUIRE_FALSE(whole);
    REQUIRE_FALSE(top);
    REQUIRE(top.error().message == whole.error().message);
    REQUIRE(top.error().code == Code::kInvalid);
  }
}

TEST_CASE("whatever the damage, every box of a WebP has the verdict and the pixels of the whole", "[backend]") {
  std::mt19937 random(7);
  PixelBuffer whole_buffer, part_buffer;
  int refused = 0;
  for (int i = 0; i < 120; ++i) {
    File file = picture(i % 3 == 0 ? 4 : 3, i % 2 == 0);
    for (int bytes = 0; bytes < 3; ++bytes) file[40 + random() % (file.size() - 40)] = static_cast<std::byte>(random());
    const int top = static_cast<int>(random() % 90), left = static_cast<int>(random() % 120);
    const kernels::Box box{left, top, 1 + static_cast<int>(random() % (120 - static_cast<unsigned>(left))),
                           1 + static_cast<int>(random() % (90 - static_cast<unsigned>(top)))};

    const auto whole = decode(file, {0, 0, 120, 90}, whole_buffer), part = decode(file, box, part_buffer);

    CAPTURE(i, box.left, box.top, box.width, box.height);
    REQUIRE(part.has_value() == whole.has_value());
    refused += part ? 0 : 1;
    for (int y = 0; part && y < box.height; ++y) {
      const std::uint8_t* const expected = whole->crop(box).row(y);
      REQUIRE(std::equal(expected, expected + box.width * 3, part->row(y)));
    }
  }
  REQUIRE((refused > 10 && refused < 110));
}

TEST_CASE("the first frame of a WebP is the one that libwebp's demultiplexer finds", "[backend]") {
  const std::vector<File> files = files_of_every_kind();
  for (std::size_t i = 0; i < files.size(); ++i) {
    CAPTURE(i);
    check_against_demux(files[i]);
  }
}

TEST_CASE("damaged chunks of a WebP have the demultiplexer's verdict", "[backend]") {
  std::mt19937 random(8);
  for (const File& whole : files_of_every_kind()) {
    for (std::size_t size = 0; size < std::min<std::size_t>(whole.size(), 90); ++size)
      check_against_demux(File(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)));
    for (int i = 0; i < 300; ++i) {
      File file = whole;
      file[random() % std::min<std::size_t>(file.size(), 90)] =
          static_cast<std::byte>(random() % 8 == 0 ? random() : 8);
      file[random() % file.size()] ^= static_cast<std::byte>(1U << random() % 8);
      if (i % 3 == 0) file.resize(file.size() - random() % 20);
      if (i % 2 == 0) put_length(file, 4, file.size() - kChunkHeader);
      CAPTURE(i);
      check_against_demux(file);
    }
  }
}

TEST_CASE("decoding a WebP takes no memory for its chunks", "[backend]") {
  if (kSanitized) return skip_loudly("a decoder short of memory: a sanitizer needs memory of its own");
  std::vector<File> chunks(3'000'000, webp_chunk("what", {}));
  chunks.push_back(chunks_of(picture(3, false))[0]);
  const File file = extended(0, chunks);

  const int outcome = with_limited_memory(std::size_t{4} << 20, [&] {
    PixelBuffer buffer;
    return decode(file, {0, 0, 120, 90}, buffer) ? 1 : 2;
  });

  REQUIRE(outcome == 1);
}

TEST_CASE("a WebP for which there is no memory is never called damaged", "[backend]") {
  if (kSanitized) return skip_loudly("a decoder short of memory: a sanitizer needs memory of its own");
  const Pixels pixels = make_pixels(700, 500, 4, 1);
  for (const bool lossless : {false, true}) {
    const File file = make_webp({.pixels = pixels, .lossless = lossless});
    std::vector<int> seen;
    for (std::size_t room = 0; room <= std::size_t{6} << 20; room += std::size_t{40} << 10) {
      seen.push_back(with_limited_memory(room, [&] {
        PixelBuffer buffer;
        const auto outcome =
            decode_webp({file, {700, 500}, {0, 0, 700, 500}, Clock::now() + std::chrono::minutes(5)}, buffer);
        return outcome ? 1 : outcome.error().code == Code::kExhausted ? 2 : 3;
      }));
    }

    CAPTURE(lossless);
    REQUIRE(seen.front() == 2);
    REQUIRE(seen.back() == 1);
    REQUIRE(std::count_if(seen.begin(), seen.end(), [](int code) { return code != 1 && code != 2; }) == 0);
  }
}

}  // namespace millrace
