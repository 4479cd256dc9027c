// Turns one sample's reference into its encoded bytes and its header. Thread-safe.
#pragma once

#include "daemon/fetch/roots.h"
#include "daemon/formats/probe.h"
#include "daemon/model/batch_request.h"
#include "daemon/model/caller.h"
#include "daemon/model/encoded_image.h"
#include "daemon/model/input_ring.h"
#include "daemon/model/limits.h"
#include "proto/base/result.h"

namespace millrace {

class SampleReader {
 public:
  // `roots` outlives it; `pool`, which may be null, what it reads.
  SampleReader(const Roots& roots, const SampleLimits& limits, EncodedPool* pool)
      : roots_(roots), limits_(limits), pool_(pool) {}

  // `ring`: null if the session has none. Errors are the sample's, with the reason and no name: kDenied, kNotFound,
  // kInvalid, kPrecondition, kExhausted, kInternal; but for kUnavailable, which is the daemon's own want (host_want.h).
  Result<EncodedImage> read(const SampleSource& source, const Caller& caller, const InputRing* ring,
                            UseOrientation use) const;

 private:
  struct ReadSource;

  const Roots& roots_;
  const SampleLimits limits_;
  EncodedPool* const pool_;
};

}  // namespace millrace
