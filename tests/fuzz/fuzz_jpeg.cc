// Our JPEG decoder against libjpeg-turbo: whatever the bytes are, what it decodes has the same header, coefficients and
// pixels, and what libjpeg-turbo calls an error it does not decode. Each instruction set, one stream and two. The first
// eight bytes choose the box.
#include <cstdlib>
#include <memory>
#include <vector>

#include "daemon/backend/cpu/jpeg_choice.h"
#include "daemon/backend/cpu/jpeg_decoder.h"
#include "tests/fuzz/fuzz_pixels.h"
#include "tests/support/block_collector.h"
#include "tests/support/jpeg_coefficients.h"
#include "tests/support/same_header.h"

namespace {

using namespace millrace;
using kernels::jpeg::Decoder;
using kernels::jpeg::Header;
using kernels::jpeg::Outcome;
using kernels::jpeg::Streams;

constexpr int kMostPixels = 1 << 18;
constexpr std::size_t kBoxBytes = 8;

void require(bool condition) {
  if (!condition) std::abort();
}

std::vector<std::unique_ptr<Decoder>>& decoders() {
  static std::vector<std::unique_ptr<Decoder>> all = [] {
    std::vector<std::unique_ptr<Decoder>> made;
    for (const kernels::Target target : kernels::available_targets()) {
      for (const Streams streams : {Streams::kOne, Streams::kTwo})
        made.push_back(std::make_unique<Decoder>(target, streams));
    }
    return made;
  }();
  return all;
}

// The file up to the first marker in the scan's data, so that libjpeg-turbo reads nothing behind it.
std::vector<std::byte> first_scan_of(ByteView file, std::size_t scan) {
  std::size_t end = scan;
  while (end + 1 < file.size() && (file[end] != std::byte{0xFF} || file[end + 1] == std::byte{0})) ++end;
  std::vector<std::byte> result(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(end));
  result.insert(result.end(), {std::byte{0xFF}, std::byte{0xD9}});
  return result;
}

// Every block of the image.
void check_coefficients(ByteView file, const Header& header, Decoder& decoder) {
  const auto scan = static_cast<std::size_t>(header.scan.data() - reinterpret_cast<const std::uint8_t*>(file.data()));
  const auto expected = read_jpeg_coefficients(first_scan_of(file, scan));
  if (expected) require(expected->header_warnings == 0 && same_header(header, *expected));
  const int h = header.component[0].h, v = header.component[0].v;
  const std::int64_t mcus =
      std::int64_t{(header.size.width + 8 * h - 1) / (8 * h)} * ((header.size.height + 8 * v - 1) / (8 * v));
  const std::int64_t blocks = mcus * (header.components == 1 ? 1 : h * v + 2);
  BlockCollector collector;
  if (decoder.decode_blocks(header, blocks, blocks, collector) != Outcome::kDecoded) return;
  require(expected.has_value());
  require(collector.all == in_scan_order(*expected));
}

void check_pixels(const DecodeRequest& request) {
  PixelBuffer expected_buffer, buffer;
  const Result<kernels::U8View> expected = decode_jpeg(request, expected_buffer);
  if (!expected && expected.error().code == Code::kDeadline) return;
  for (const auto& decoder : decoders()) {
    const auto decoded = decode_jpeg_fast(request, buffer, *decoder);
    if (!decoded || (!*decoded && decoded->error().code == Code::kDeadline)) continue;
    require(expected && *decoded && same_pixels(*expected, **decoded));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < kBoxBytes) return 0;
  const ByteView file(reinterpret_cast<const std::byte*>(data) + kBoxBytes, size - kBoxBytes);
  const auto header = kernels::jpeg::read_header({data + kBoxBytes, size - kBoxBytes});
  if (!header || std::int64_t{header->size.width} * header->size.height > kMostPixels) return 0;
  check_coefficients(file, *header, *decoders()[data[0] % decoders().size()]);
  check_pixels({file, header->size, any_box_of(data, header->size), Clock::now() + std::chrono::seconds(20)});
  return 0;
}
