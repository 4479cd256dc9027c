// What the daemon keeps of a file beside the file: bytes that a cache, a fetch thread and a lane hold together, and what
// they are. The bytes never change once they are shared. Thread-safe: immutable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "daemon/model/files/dataset.h"
#include "proto/base/batch_choices.h"
#include "proto/base/bytes.h"
#include "proto/base/why_unpacked.h"

namespace millrace {

// In the order of what they save, and of what they take.
enum class CachedKind : std::uint8_t {
  kIndex,   // a seek index: where decoding of the file can start (kernels/jpeg/seek_index.h)
  kPacked,  // its coefficients, packed (kernels/packed): stands in for the file
  kTensor,  // finished pixels, as one recipe and geometry make them
};
inline constexpr std::size_t kCachedKinds = 3;

class CachedBlock {
 public:
  // Readable zero bytes behind a packed form, for decoders that load whole vectors. Other kinds need none.
  static constexpr std::size_t kPadding = 8192;

  // Contents unknown but for `padding` zero bytes behind them; to be filled by its maker and then shared as CachedBytes.
  // Throws std::bad_alloc as `new` does, as does copy_of().
  explicit CachedBlock(std::size_t size, std::size_t padding = 0);
  static std::shared_ptr<const CachedBlock> copy_of(ByteView bytes, std::size_t padding = 0);
  CachedBlock(const CachedBlock&) = delete;
  CachedBlock& operator=(const CachedBlock&) = delete;

  ByteView view() const { return {data_.get(), size_}; }
  MutableByteView writable() { return {data_.get(), size_}; }
  std::size_t size() const { return size_; }
  std::size_t padding() const { return padding_; }
  std::size_t footprint() const { return size_ + padding_; }  // of memory

 private:
  const std::unique_ptr<std::byte[]> data_;
  const std::size_t size_, padding_;
};

// Shared: a lane may decode from it while the cache forgets it.
using CachedBytes = std::shared_ptr<const CachedBlock>;

struct CachedForm {
  CachedKind kind = CachedKind::kIndex;
  CachedBytes bytes;  // not null
};

// What a lane should make of a file's bytes, and store, beside the tensor that was asked for and a seek index.
enum class Advice : std::uint8_t {
  kNothing,
  kPack,     // the packed form, if no other sample waits
  kPackNow,  // the packed form
  kTensor,   // the tensor itself
};

struct Advised {
  Advice make = Advice::kNothing;
  WhyUnpacked unpacked = WhyUnpacked::kNotSaid;  // where packing was wished for, and is not advised
  bool index = true;  // a seek index, where there is none; false: its next access packs it, and has no use for one
};

// What may be kept of an image, and looked for, on behalf of a request.
struct CacheWish {
  CacheUse most = CacheUse::kTensors;
  bool at_once = false;  // packed at the first access, whatever else waits
  std::uint64_t tensor_of =
      0;                   // stands for all that decides the tensor's bytes beside the file's contents; 0: chance does
  DatasetMember member{};  // which sample of which dataset the image is, if of any
};

}  // namespace millrace
