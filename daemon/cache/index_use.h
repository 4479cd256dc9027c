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
  // `identity`: the file's; nullopt if it cannot be relied upon, and then the bytes themselves are the key. Both
  // outlive this.
  IndexUse(SeekCache& cache, const std::optional<FileIdentity>& identity, ByteView bytes)
      : cache_(cache), identity_(identity), bytes_(bytes) {}

  // What the decoder takes; nullptr if an index does not pay for so small a file. Call it only once it is certain that
  // our own decoder takes the file.
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

// Calls `decode` with the kernels::jpeg::Seeking* of `use`, or with nullptr if there is no `use`, and returns its answer.
template <typename Decode>
kernels::jpeg::Outcome with_index(IndexUse* use, Decode decode) {
  if (use == nullptr) return decode(static_cast<kernels::jpeg::Seeking*>(nullptr));
  const kernels::jpeg::Outcome outcome = decode(use->begin());
  use->end(outcome);
  return outcome;
}

}  // namespace millrace
