#include "daemon/backend/cpu/decoders/png/png_chunks.h"

#include <libdeflate.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace millrace {
namespace {

constexpr std::array<unsigned char, 8> kSignature = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
constexpr std::size_t kFrame = 8;  // length and type
constexpr std::size_t kChecksum = 4;

std::uint32_t big_endian(ByteView bytes, std::size_t at = 0) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | std::to_integer<std::uint32_t>(bytes[at + i]);
  return value;
}

Error damaged(const std::string& what) {
  return {Code::kInvalid, "damaged PNG: " + what};
}
Error truncated() {
  return {Code::kInvalid, "truncated PNG: the file ends before the image does"};
}

// Pillow takes digits and underscores for letters.
bool is_name(std::string_view type) {
  return std::all_of(type.begin(), type.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

// The chunks that Pillow looks into, and the bytes that it needs of them (PNG 11.2, 11.3; APNG 1.0).
struct LeastBytes {
  std::string_view type;
  std::size_t bytes;
};
constexpr LeastBytes kLeastBytes[] = {{"IHDR", 13}, {"gAMA", 4}, {"cHRM", 32}, {"sRGB", 1},
                                      {"pHYs", 9},  {"acTL", 8}, {"fcTL", 26}, {"fdAT", 4}};

bool is_too_short(std::string_view type, std::size_t length) {
  return std::any_of(std::begin(kLeastBytes), std::end(kLeastBytes),
                     [&](const LeastBytes& least) { return least.type == type && length < least.bytes; });
}

// PNG 11.2.1, table 12.
bool is_known(std::uint8_t bit_depth, std::uint8_t colour) {
  switch (static_cast<PngColour>(colour)) {
    case PngColour::kGrey:
      return bit_depth == 1 || bit_depth == 2 || bit_depth == 4 || bit_depth == 8 || bit_depth == 16;
    case PngColour::kPalette:
      return bit_depth == 1 || bit_depth == 2 || bit_depth == 4 || bit_depth == 8;
    case PngColour::kRgb:
    case PngColour::kGreyAlpha:
    case PngColour::kRgbAlpha:
      return bit_depth == 8 || bit_depth == 16;
  }
  return false;
}

// The compression method behind the keyword of a zTXt or iCCP chunk (PNG 11.3.2.3, 11.3.3.3); nullopt: none is there.
std::optional<std::uint8_t> compression_method(ByteView data) {
  const auto keyword_end = std::find(data.begin(), data.end(), std::byte{0}) - data.begin();
  const std::size_t behind = static_cast<std::size_t>(keyword_end) + 1;
  if (behind >= data.size()) return std::nullopt;
  return std::to_integer<std::uint8_t>(data[behind]);
}

}  // namespace

unsigned bits_per_pixel(const PngHeader& header) {
  constexpr unsigned kSamples[] = {1, 0, 3, 1, 2, 0, 4};
  return header.bit_depth * kSamples[static_cast<unsigned>(header.colour)];
}

Result<PngChunks> PngChunks::open(ByteView bytes_untrusted) {
  if (bytes_untrusted.size() < kSignature.size() ||
      std::memcmp(bytes_untrusted.data(), kSignature.data(), kSignature.size()) != 0)
    return Error{Code::kInvalid, "not a PNG file: its signature is wrong"};
  PngChunks chunks(bytes_untrusted);
  chunks.at_ = kSignature.size();
  MILLRACE_TRY_VOID(chunks.walk_to_image_data());
  if (!chunks.header_) return damaged("it has no IHDR chunk");
  if (!chunks.palette_fits_ && chunks.header_->colour == PngColour::kPalette)
    return damaged("its palette has more than 256 colours");
  return chunks;
}

std::optional<PngChunks::Chunk> PngChunks::chunk_at(std::size_t at) const {
  if (at > bytes_.size() || bytes_.size() - at < kFrame) return std::nullopt;
  const std::string_view type(reinterpret_cast<const char*>(bytes_.data() + at + 4), 4);
  return Chunk{type, at + kFrame, big_endian(bytes_, at)};
}

bool PngChunks::is_whole(const Chunk& chunk) const {
  return chunk.length <= bytes_.size() - chunk.begin;
}

bool PngChunks::has_right_checksum(const Chunk& chunk) const {
  const std::size_t end = chunk.begin + chunk.length;
  if (bytes_.size() - end < kChecksum) return false;
  return libdeflate_crc32(0, bytes_.data() + chunk.begin - 4, chunk.length + 4) == big_endian(bytes_, end);
}

Result<void> PngChunks::walk_to_image_data() {
  while (true) {
    const std::optional<Chunk> chunk = chunk_at(at_);
    if (!chunk) return truncated();
    if (!is_name(chunk->type)) return damaged("a chunk's name is not letters");
    if (chunk->type == "IEND") return damaged("it has no image data");
    if (chunk->type == "IDAT") {
      begin_image_data(*chunk);
      return {};
    }
    if (!is_whole(*chunk)) return truncated();
    if (!has_right_checksum(*chunk)) return damaged("the checksum of chunk " + std::string(chunk->type) + " is wrong");
    MILLRACE_TRY_VOID(check(*chunk));
    at_ = chunk->begin + chunk->length + kChecksum;
  }
}

void PngChunks::begin_image_data(const Chunk& first) {
  in_image_ = true;
  animated_ = frames_ && (*frames_ > 1 || !image_is_frame_);
  at_ = first.begin;
  chunk_end_ = first.begin + first.length;
}

ByteView PngChunks::next_image_data() {
  while (at_ == chunk_end_) {
    const std::optional<Chunk> chunk = chunk_at(at_ + kChecksum);
    if (!chunk || (chunk->type != "IDAT" && chunk->type != "DDAT")) return {};
    at_ = chunk->begin;
    chunk_end_ = chunk->begin + chunk->length;
  }
  const std::size_t size = std::min({kPiece, chunk_end_ - at_, bytes_.size() - at_});
  const ByteView piece = bytes_.subspan(at_, size);
  at_ += size;
  return piece;
}

Result<void> PngChunks::check_rest() {
  while (const std::optional<Chunk> chunk = chunk_at(chunk_end_ + kChecksum)) {
    if (!is_name(chunk->type) || chunk->type == "IEND") break;
    if (chunk->type == "fcTL" && animated_) break;  // the next frame
    if (!is_whole(*chunk))
      return Error{Code::kInvalid, "truncated PNG: the file ends in a chunk behind the image data"};
    MILLRACE_TRY_VOID(check(*chunk));
    chunk_end_ = chunk->begin + chunk->length;
  }
  return {};
}

Result<void> PngChunks::check(const Chunk& chunk) {
  const ByteView data = bytes_.subspan(chunk.begin, chunk.length);
  const std::string_view type = chunk.type;
  if (is_too_short(type, chunk.length)) return damaged("its " + std::string(type) + " chunk is too short");
  if (type == "IHDR") return check_header(data);
  if (type == "tRNS") return check_transparency(data);
  if (type == "fcTL") return check_frame_control(data);
  if (type == "fdAT") return check_frame_data(data);
  if (type == "zTXt" && compression_method(data).value_or(0) != 0) return damaged("a text's compression is unknown");
  if (type == "iCCP" && compression_method(data).value_or(1) != 0)
    return damaged("its colour profile's compression is unknown");
  if (type == "PLTE") note_palette(data);
  if (type == "acTL") note_animation(data);
  return {};
}

// PNG 11.2.1. The compression method is not looked at, and whatever follows the 13 bytes is not either.
Result<void> PngChunks::check_header(ByteView data) {
  const auto byte = [&](std::size_t at) { return std::to_integer<std::uint8_t>(data[at]); };
  if (byte(11) != 0) return damaged("its filter method is unknown");
  if (in_image_) return {};
  if (header_) return damaged("it has two IHDR chunks");
  if (!is_known(byte(8), byte(9))) return damaged("its bit depth and colour type do not go together");
  header_ =
      PngHeader{big_endian(data, 0), big_endian(data, 4), byte(8), static_cast<PngColour>(byte(9)), byte(12) != 0};
  if (header_->width == 0 || header_->height == 0) return damaged("it has no pixels");
  return {};
}

// PNG 11.3.1.1. A palette's may be as long as it likes.
Result<void> PngChunks::check_transparency(ByteView data) const {
  if (!header_) return {};
  const bool grey = header_->colour == PngColour::kGrey;
  const bool rgb = header_->colour == PngColour::kRgb;
  if (data.size() < (grey ? 2U : rgb ? 6U : 0U)) return damaged("its tRNS chunk is too short");
  return {};
}

// A palette that comes before the header is none yet.
void PngChunks::note_palette(ByteView data) {
  if (in_image_ || !header_) return;
  palette_fits_ = data.size() / 3 <= palette_.size() / 3;
  if (!palette_fits_) return;
  palette_.fill(0);
  std::memcpy(palette_.data(), data.data(), data.size() / 3 * 3);
}

void PngChunks::note_animation(ByteView data) {
  const std::uint32_t frames = big_endian(data);
  if (frames_) {
    frames_.reset();
  } else if (frames > 0 && frames <= 0x80000000U) {
    frames_ = frames;
  }
}

Result<void> PngChunks::check_sequence(std::uint32_t number) {
  if (sequence_ ? number != *sequence_ + 1 || number == 0 : number != 0)
    return damaged("its animation's chunks are out of order");
  sequence_ = number;
  return {};
}

Result<void> PngChunks::check_frame_control(ByteView data) {
  MILLRACE_TRY_VOID(check_sequence(big_endian(data)));
  const std::uint64_t width = big_endian(data, 4), height = big_endian(data, 8), left = big_endian(data, 12),
                      top = big_endian(data, 16);
  const PngHeader header = header_.value_or(PngHeader{});
  if (left + width > header.width || top + height > header.height)
    return damaged("a frame of its animation lies outside the picture");
  if (in_image_) return {};
  // APNG 1.0, "fcTL": of a frame that is the default image.
  if (width != header.width || height != header.height) return damaged("its first frame is smaller than the picture");
  image_is_frame_ = true;
  return {};
}

Result<void> PngChunks::check_frame_data(ByteView data) {
  if (!in_image_) return damaged("data of another frame comes before the image data");
  if (!sequence_) return damaged("its animation's chunks are out of order");
  return check_sequence(big_endian(data));
}

}  // namespace millrace
