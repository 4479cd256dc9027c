// Turns one sample's reference into its encoded bytes and its header, or into what was kept of it. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "daemon/fetch/open/roots.h"
#include "daemon/formats/probe.h"
#include "daemon/model/batch_request.h"
#include "daemon/model/bytes/cache_lookup.h"
#include "daemon/model/bytes/encoded_image.h"
#include "daemon/model/bytes/input_ring.h"
#include "daemon/model/caller.h"
#include "daemon/model/in_force.h"
#include "daemon/model/limits.h"
#include "proto/base/result.h"

namespace millrace {

// How a sample is wanted.
struct ReadWish {
  UseOrientation orientation = UseOrientation::kYes;
  CacheWish keep{.most = CacheUse::kOff};
  bool from_file = false;  // whatever is kept of it
};

// A sample's file that was opened before its turn, together with others.
struct OpenedAhead {
  std::int64_t begun = 0;                        // nanoseconds since 1970, before it was opened
  Result<std::shared_ptr<const OpenFile>> file;  // shared by the samples that are parts of it
};

class SampleReader {
 public:
  struct Options {
    InForce<Limits> limits;
    EncodedPool* pool = nullptr;        // of the memory of what is read, which it outlives; nullptr: none
    CacheLookup* kept = nullptr;        // outlives this; nullptr: nothing is kept
    std::chrono::seconds stable_after;  // see is_stable()
    // So many of the largest size that the limits allow. Threads beyond find no memory for files that would be more.
    std::uint32_t files_at_once = 1U << 16U;
  };

  // `roots` outlives it.
  SampleReader(const Roots& roots, const Options& options) : roots_(roots), options_(options) {}

  // The files of those sources that have one, where an opener opens the caller's: one message is cheaper than many. Where
  // none does: those that more than one of the sources are parts of. Each file is opened once. As many as sources, or
  // none at all.
  std::vector<std::optional<OpenedAhead>> open_ahead(std::span<const SampleSource* const> sources,
                                                     const Caller& caller) const;

  // A file is opened with the caller's rights whatever is kept of it. `ring`: null if the session has none. Errors are
  // the sample's, with the reason and no name: kDenied, kNotFound, kInvalid, kPrecondition, kExhausted, kInternal; but
  // for kUnavailable, which is the daemon's own want (host_shortage.h). `bytes_read`: what was read is added, for an image or
  // in vain.
  Result<EncodedImage> read(const SampleSource& source, const Caller& caller, const InputRing* ring,
                            const ReadWish& wish, Bytes& bytes_read, std::optional<OpenedAhead> ahead = {}) const;

 private:
  struct ReadSource;

  const Roots& roots_;
  const Options options_;
  mutable std::atomic<std::uint64_t> being_read_{0};  // bytes of files that threads are at
};

}  // namespace millrace
