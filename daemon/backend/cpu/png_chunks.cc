#include "daemon/backend/cpu/png_chunks.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

namespace millrace {
namespace {

constexpr std::array<unsigned char, 8> kSignature = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
constexpr std::array<unsigned char, 12> kEnd = {0, 0, 0, 0, 'I', 'E', 'N', 'D', 0xAE, 0x42, 0x60, 0x82};
constexpr std::size_t kAround = 12;  // length, type, checksum

std::uint32_t big_endian(ByteView bytes) {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | std::to_integer<std::uint32_t>(bytes[i]);
  return value;
}

struct Chunk {
  std::string_view type;
  ByteView whole;  // with length, type and checksum

  bool has_right_checksum() const {
    const auto* const checked = reinterpret_cast<const Bytef*>(whole.data() + 4);
    return crc32_z(0, checked, whole.size() - 8) == big_endian(whole.last(4));
  }
};

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// The chunk that `bytes` begin with. The last one of a cut-off file is as long as the file lets it be: its data counts.
Result<Chunk> first_chunk(ByteView bytes) {
  if (bytes.size() < 8) return Error{Code::kInvalid, "truncated PNG: the file ends before the image does"};
  const std::string_view type(reinterpret_cast<const char*>(bytes.data() + 4), 4);
  if (!std::all_of(type.begin(), type.end(), is_letter))
    return Error{Code::kInvalid, "damaged PNG: a chunk's name is not letters"};
  const std::size_t size = std::size_t{big_endian(bytes)} + kAround;
  if (size > bytes.size() && type != "IDAT")
    return Error{Code::kInvalid, "truncated PNG: the file ends before the image does"};
  return Chunk{type, bytes.first(std::min(size, bytes.size()))};
}

bool begins_with_signature(ByteView bytes) {
  return bytes.size() >= kSignature.size() && std::memcmp(bytes.data(), kSignature.data(), kSignature.size()) == 0;
}

}  // namespace

Result<PngChunks> PngChunks::parse(ByteView bytes_untrusted) {
  if (!begins_with_signature(bytes_untrusted)) return Error{Code::kInvalid, "not a PNG file: its signature is wrong"};
  PngChunks chunks;
  chunks.parts_.push_back(bytes_untrusted.first(kSignature.size()));
  bool in_image = false;
  for (ByteView rest = bytes_untrusted.subspan(kSignature.size()); !in_image || !rest.empty();) {
    Result<Chunk> chunk = first_chunk(rest);
    if (!chunk && in_image) break;  // what follows the image data does not matter
    if (!chunk) return std::move(chunk).error();
    const bool image = chunk->type == "IDAT";
    if (in_image && !image) break;
    if (chunk->type == "IEND") return Error{Code::kInvalid, "damaged PNG: it has no image data"};
    if (!image && !chunk->has_right_checksum())
      return Error{Code::kInvalid, "damaged PNG: the checksum of chunk " + std::string(chunk->type) + " is wrong"};
    if (image || chunk->type == "IHDR" || chunk->type == "PLTE") chunks.parts_.push_back(chunk->whole);
    in_image = image;
    rest = rest.subspan(chunk->whole.size());
  }
  chunks.parts_.push_back(std::as_bytes(std::span(kEnd)));
  for (const ByteView part : chunks.parts_) chunks.left_ += part.size();
  return chunks;
}

bool PngChunks::read(MutableByteView out) {
  if (out.size() > left_) return false;
  left_ -= out.size();
  while (!out.empty()) {
    const ByteView part = parts_[part_].subspan(offset_);
    const std::size_t count = std::min(part.size(), out.size());
    std::memcpy(out.data(), part.data(), count);
    out = out.subspan(count);
    offset_ += count;
    if (count == part.size()) {
      ++part_;
      offset_ = 0;
    }
  }
  return true;
}

}  // namespace millrace
