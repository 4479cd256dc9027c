// An encoded image in memory and what its header says. Moved from fetch to the backend; owns its bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "daemon/model/bytes/cached_bytes.h"
#include "daemon/model/bytes/encoded_pool.h"
#include "daemon/model/files/dataset.h"
#include "daemon/model/files/file_identity.h"
#include "proto/base/bytes.h"
#include "proto/base/recipe.h"

namespace millrace {

// What the daemon knows of each is a row of daemon/formats.
enum class ImageFormat : std::uint8_t { kJpeg, kPng, kWebp, kPacked, kPnm, kBmp, kGif, kTiff, kAvif, kHeic, kL3 };
inline constexpr std::size_t kImageFormats = static_cast<std::size_t>(ImageFormat::kL3) + 1;

// What a format's library takes to decode a picture, beside the pixels that it hands over. 0: not known.
struct CodecMemory {
  Bytes needed;
  Bytes at_most;  // more than needed where a file may ask for it further on
  friend bool operator==(const CodecMemory&, const CodecMemory&) = default;
};

// What a file may have beside grey or RGB pixels of 8 bits, and what becomes of it.
struct ImageFeatures {
  bool alpha = false;      // dropped
  bool cmyk = false;       // made RGB; four bytes a pixel until then
  bool deep = false;       // more than 8 bits a sample: made 8, as Pillow does
  bool passes = false;     // progressive or interlaced: no row is complete before the last pass
  bool animation = false;  // its first picture is the image
  friend bool operator==(const ImageFeatures&, const ImageFeatures&) = default;
};

// From the header alone, not from decoding.
struct SourceInfo {
  ImageFormat format = ImageFormat::kJpeg;
  Size stored;                   // pixels in the file
  std::uint8_t orientation = 1;  // EXIF, 1 ... 8; 1 when absent, unreadable or ignored by the recipe
  CodecMemory codec;
  ImageFeatures has{};  // as what stands before the image data says
  friend bool operator==(const SourceInfo&, const SourceInfo&) = default;
};

// Size after the orientation was applied: sides swapped for 5 ... 8.
constexpr Size oriented_size(const SourceInfo& info) {
  return info.orientation >= 5 ? Size{info.stored.height, info.stored.width} : info.stored;
}

// Bytes that end with at least kReadSlack readable zero bytes, so that decoders may load words. Thread-bound(its
// owner).
class EncodedBytes {
 public:
  static constexpr std::size_t kReadSlack = 64;
  // Readable, with any contents behind the slack: what packed coefficients want (kernels/packed), which may be in the
  // bytes. Clearing it for every image would cost a tiny one more than reading it.
  static constexpr std::size_t kRoomBehind = 4352;

  EncodedBytes() = default;
  // Unknown contents but for the slack. `pool`, if any, is where the memory comes from and goes back to; outlives it.
  explicit EncodedBytes(std::size_t size, EncodedPool* pool = nullptr);
  ~EncodedBytes() { release(); }
  EncodedBytes(EncodedBytes&& other) noexcept;
  EncodedBytes& operator=(EncodedBytes&& other) noexcept;

  ByteView view() const { return {block_.data.get(), size_}; }
  MutableByteView writable() { return {block_.data.get(), size_}; }
  std::size_t size() const { return size_; }
  void shrink(std::size_t size);  // REQUIRES: size <= this->size()
  void clear_behind();            // all of kRoomBehind is zero bytes from here on, until the next shrink()

 private:
  void release() noexcept;

  EncodedPool::Block block_;
  EncodedPool* pool_ = nullptr;
  std::size_t size_ = 0;
};

struct EncodedImage {
  EncodedBytes bytes;
  SourceInfo info;
  // Of the file whose contents it is; nullopt: none, or none to be relied upon.
  std::optional<FileIdentity> identity{};
  // The identity alone tells the contents from any others: what is made of them may stand in for the file, unread.
  bool stable = false;
  std::uint32_t passes = 1;              // of the file's bytes, where they cost time beyond its bytes and pixels
  std::uint8_t orientation_in_file = 1;  // also where the recipe ignores it
  std::uint32_t user = 0;                // whose request it is: what is kept of bytes without an identity is his alone
  CacheWish wish{};
  // Made from the very contents that the caller may read: `bytes` may then be empty. The fetch stage's, or a lane's own.
  std::optional<CachedForm> kept{};
};

inline std::optional<CachedKind> kind_kept(const EncodedImage& image) {
  return image.kept ? std::optional(image.kept->kind) : std::nullopt;
}

}  // namespace millrace
