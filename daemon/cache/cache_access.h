// One image's turn with the pictures that are kept of it: looks them up, and says, keeps or forgets what comes of it.
// Thread-bound(a lane).
#pragma once

#include <optional>

#include "daemon/cache/image_cache.h"
#include "daemon/model/bytes/encoded_image.h"

namespace millrace {

// What is to be made of an image for the cache, and where it goes. Owns the file's bytes.
struct Unmade {
  EncodedImage image;
  CacheKey key;  // of the file
  Advice advice = Advice::kNothing;
};

class CacheAccess {
 public:
  // Both outlive this. `tensor_bytes`: of the tensor that is asked for.
  CacheAccess(ImageCache& cache, EncodedImage& image, std::size_t tensor_bytes = 0)
      : cache_(cache), image_(image), tensor_bytes_(tensor_bytes) {}

  // Where the image has bytes and a picture of these very bytes is kept, sets image.kept.
  void find();
  // The same of a packed form alone, once more.
  void find_packed() { find(CachedKind::kPacked); }
  // What image.kept has is of no use: it is forgotten, here and there.
  void reject();

  // What to make beside the sample: of its bytes, where image.kept does not stand in for them, or of its tensor.
  Advice advice() const { return advised_.make; }
  // Whether a seek index is to be made where there is none.
  bool makes_index() const { return advised_.index; }
  // Why it is not to be packed, where that was wished for.
  WhyUnpacked unpacked() const { return advised_.unpacked; }
  const CacheKey& key() const { return key_; }

 private:
  bool is_of_image(const CachedEntry& entry);
  bool find(CachedKind kind);
  CacheKey key_of(CachedKind kind) const;

  ImageCache& cache_;
  EncodedImage& image_;
  const std::size_t tensor_bytes_;
  CacheKey key_;
  std::optional<std::uint64_t> contents_;  // digest of the bytes, once it is asked for
  Advised advised_;
};

// Keeps a picture that was made of the image's bytes, if there is a place for it. `key`: the file's.
bool keep(ImageCache& cache, const EncodedImage& image, const CacheKey& key, CachedKind kind, CachedBytes picture);

}  // namespace millrace
