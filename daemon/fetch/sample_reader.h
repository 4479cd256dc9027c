// Turns one sample's reference into its encoded bytes and its header, or into what was kept of it. Thread-safe.
#pragma once

#include <chrono>

#include "daemon/fetch/roots.h"
#include "daemon/formats/probe.h"
#include "daemon/model/batch_request.h"
#include "daemon/model/caller.h"
#include "daemon/model/encoded_image.h"
#include "daemon/model/in_force.h"
#include "daemon/model/input_ring.h"
#include "daemon/model/kept_lookup.h"
#include "daemon/model/limits.h"
#include "proto/base/result.h"

namespace millrace {

// How a sample is wanted.
struct ReadWish {
  UseOrientation orientation = UseOrientation::kYes;
  KeptWish keep{.most = CacheUse::kOff};
  bool from_file = false;  // whatever is kept of it
};

class SampleReader {
 public:
  struct Options {
    InForce<SampleLimits> limits;
    EncodedPool* pool = nullptr;   // of the memory of what is read, which it outlives; nullptr: none
    KeptLookup* kept = nullptr;    // outlives this; nullptr: nothing is kept
    std::chrono::seconds settled;  // see is_settled()
  };

  // `roots` outlives it.
  SampleReader(const Roots& roots, const Options& options) : roots_(roots), options_(options) {}

  // A file is opened with the caller's rights whatever is kept of it. `ring`: null if the session has none. Errors are
  // the sample's, with the reason and no name: kDenied, kNotFound, kInvalid, kPrecondition, kExhausted, kInternal; but
  // for kUnavailable, which is the daemon's own want (host_want.h). `bytes_read`: what was read is added, for an image or
  // in vain.
  Result<EncodedImage> read(const SampleSource& source, const Caller& caller, const InputRing* ring,
                            const ReadWish& wish, Bytes& bytes_read) const;

 private:
  struct ReadSource;

  const Roots& roots_;
  const Options options_;
};

}  // namespace millrace
