// One image's decoding by a seek index: looks it up, and keeps, counts or forgets what comes of it. Thread-bound(a
// lane).
#pragma once

#include <optional>

#include "daemon/cache/image_cache.h"
#include "daemon/model/bytes/encoded_image.h"
#include "kernels/cpu/jpeg/decoder.h"

namespace millrace {

class IndexUse {
 public:
  // `helped`: set if an index did. All of them outlive this.
  // `makes`: whether one is made where there is none.
  IndexUse(ImageCache& cache, const EncodedImage& image, bool makes, bool& helped)
      : cache_(cache), image_(image), makes_(makes), helped_(helped) {}

  // What the decoder takes; nullptr if an index does not pay for so small a file, or there is none. Call it only once it is certain that
  // our own decoder takes the file.
  kernels::jpeg::Seeking* begin();
  // The decoder is done.
  void end(kernels::jpeg::Outcome outcome);

 private:
  ImageCache& cache_;
  const EncodedImage& image_;
  const bool makes_;
  bool& helped_;
  CacheKey key_;
  CachedBytes known_;
  kernels::jpeg::Seeking seeking_;
};

// Calls `decode` with the kernels::jpeg::Seeking* of `use`, or with nullptr if there is no `use`, and returns its answer.
template <typename Decode>
kernels::jpeg::Outcome with_index(IndexUse* use, Decode decode) {
  if (use == nullptr) return decode(static_cast<kernels::jpeg::Seeking*>(nullptr));
  const kernels::jpeg::Outcome outcome = decode(use->begin());
  use->end(outcome);
  return outcome;
}

}  // namespace millrace
