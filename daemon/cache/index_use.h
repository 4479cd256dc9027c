// One image's decoding by a seek index: looks it up, and keeps, counts or forgets what comes of it. Thread-bound(a
// lane).
#pragma once

#include <optional>

#include "daemon/cache/seek_cache.h"
#include "daemon/model/file_identity.h"
#include "kernels/cpu/jpeg/decoder.h"

namespace millrace {

class IndexUse {
 public:
  // `identity`: nullopt: none that can be relied upon; the bytes themselves are the key. Both outlive this.
  IndexUse(SeekCache& cache, const std::optional<FileIdentity>& identity, ByteView bytes)
      : cache_(cache), identity_(identity), bytes_(bytes) {}

  // For the decoder; nullptr: an index does not pay for so small a file. Call it when the file is known to be for our
  // decoder.
  kernels::jpeg::Seeking* begin();
  // The decoder is done.
  void end(kernels::jpeg::Outcome outcome);

 private:
  SeekCache& cache_;
  const std::optional<FileIdentity>& identity_;
  const ByteView bytes_;
  IndexKey key_;
  SharedIndex known_;
  kernels::jpeg::Seeking seeking_;
};

// Has `decode` decode by a kernels::jpeg::Seeking*, which is nullptr without `use`.
template <typename Decode>
kernels::jpeg::Outcome with_index(IndexUse* use, Decode decode) {
  if (use == nullptr) return decode(static_cast<kernels::jpeg::Seeking*>(nullptr));
  const kernels::jpeg::Outcome outcome = decode(use->begin());
  use->end(outcome);
  return outcome;
}

}  // namespace millrace
