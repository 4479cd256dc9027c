// Bytes to pixels through every decoder with small limits, as a lane does it: whatever the bytes are, each decoder
// answers in time, inside its memory, and gives every box the pixels of the whole; those of all but
// JPEG and L3 its verdict, too. The size is the one that the daemon finds, also for the decoders of other formats. The first byte chooses the
// box.
#include <cstdlib>

#include "daemon/backend/cpu/decoders/decoder_table.h"
#include "tests/fuzz/fuzz_pixels.h"
#include "tests/support/pictures/stored_size.h"

namespace {

using namespace millrace;

constexpr int kMostPixels = 1 << 18;

using DecodeFunction = Result<kernels::U8View> (*)(const DecodeRequest&, PixelBuffer&);
enum class Verdict { kOfBox, kOfWhole };

void try_decoder(DecodeFunction decode, Verdict verdict, ByteView bytes, kernels::Size size, std::uint8_t choice,
                 bool indices) {
  DecodeRequest request{bytes, size, kernels::whole(size), Clock::now() + std::chrono::seconds(5)};
  request.indices = indices;
  PixelBuffer whole_buffer, part_buffer;
  const Result<kernels::U8View> whole = decode(request, whole_buffer);
  const kernels::Box box = request.box = box_of(choice, size);
  const Result<kernels::U8View> part = decode(request, part_buffer);
  if (verdict == Verdict::kOfWhole && whole.has_value() != part.has_value()) std::abort();
  if (whole && part && !same_pixels(whole->crop(box), *part)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const ByteView bytes(reinterpret_cast<const std::byte*>(data) + 1, size - 1);
  const std::optional<kernels::Size> stored = stored_size(bytes);
  if (!stored || std::int64_t{stored->width} * stored->height > kMostPixels) return 0;
  std::vector<std::byte> padded(bytes.begin(), bytes.end());
  padded.resize(bytes.size() + EncodedBytes::kReadSlack);  // which L3's decoder may read; the others do without
  for (const FormatDecoder& row : kDecoders) {
    const bool is_l3 = row.format == ImageFormat::kL3;
    const Verdict verdict = row.format == ImageFormat::kJpeg || is_l3 ? Verdict::kOfBox : Verdict::kOfWhole;
    const ByteView file = is_l3 ? ByteView(padded).first(bytes.size()) : bytes;
    try_decoder(row.decode, verdict, file, *stored, data[0], false);
    if (row.has_indices) try_decoder(row.decode, verdict, file, *stored, data[0], true);
  }
  return 0;
}
