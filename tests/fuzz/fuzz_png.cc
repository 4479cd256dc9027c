// PNG by our own decoder and by libspng, of any image data with the right checksums around it: pixels, verdicts and
// words are the same. The first five bytes choose what kind of picture, how large, where its chunks end, and the box;
// the rest is deflate data.
#include <zlib.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "daemon/backend/cpu/decoders/png/png_decoder.h"
#include "tests/fuzz/fuzz_pixels.h"
#include "tests/support/pictures/png_file.h"

namespace {

using namespace millrace;

constexpr unsigned kKinds[][2] = {{0, 1}, {0, 2}, {0, 4}, {0, 8}, {0, 16}, {2, 8}, {2, 16}, {3, 1},
                                  {3, 2}, {3, 4}, {3, 8}, {4, 8}, {4, 16}, {6, 8}, {6, 16}};
constexpr std::size_t kMostBytes = 1 << 18;

// The data with a header and, where it inflates, its checksum.
std::string zlib_stream(const std::string& data) {
  z_stream stream{};
  if (inflateInit2(&stream, -15) != Z_OK) std::abort();
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, inflateEnd);
  std::string inflated(kMostBytes, '\0');
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
  stream.next_out = reinterpret_cast<Bytef*>(inflated.data());
  stream.avail_out = static_cast<uInt>(inflated.size());
  inflate(&stream, Z_FINISH);
  return "\x78\x9C" + data.substr(0, data.size() - stream.avail_in) +
         big_endian(
             {static_cast<unsigned>(adler32_z(1, reinterpret_cast<const Bytef*>(inflated.data()), stream.total_out))});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kChoices = 5;
  if (size < kChoices) return 0;
  const auto& [colour, depth] = kKinds[data[0] % std::size(kKinds)];
  const kernels::Size stored{data[1] + 1, data[2] % 64 + 1};
  const std::string stream = zlib_stream({reinterpret_cast<const char*>(data) + kChoices, size - kChoices});
  std::vector<PngPart> parts{
      {"IHDR", png_header(static_cast<unsigned>(stored.width), static_cast<unsigned>(stored.height), depth, colour)}};
  if (colour == 3) parts.push_back({"PLTE", "\x01\x02\x03\x04\x05\x06\x07\x08\x09"});
  const std::size_t chunk = data[3] == 0 ? stream.size() : data[3];
  for (std::size_t at = 0; at < stream.size(); at += chunk) parts.push_back({"IDAT", stream.substr(at, chunk)});
  parts.push_back({"IEND", ""});
  const std::vector<std::byte> file = make_png_of(parts);
  const DecodeRequest request{file, stored, box_of(data[4], stored), Clock::now() + std::chrono::seconds(5)};
  PixelBuffer buffer, other_buffer;
  const auto pixels = decode_png(request, buffer), others = decode_png_by_libspng(request, other_buffer);
  if (pixels.has_value() != others.has_value()) std::abort();
  if (!pixels && pixels.error().message != others.error().message) std::abort();
  if (pixels && !same_pixels(*pixels, *others)) std::abort();
  return 0;
}
