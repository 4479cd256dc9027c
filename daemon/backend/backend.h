// Stage 5: what every backend does. Encoded bytes go in, tensor bytes come out, written straight into the slot;
// asynchronously, because a GPU or an FPGA is, and the CPU's lanes then fit as well. daemon/doc/add_a_backend.md is the
// guide for writers, tests/conformance the judge.
//
//   try_submit(job) ──▶ queued ──▶ running ──▶ done(results)    exactly once for every accepted job, in any order,
//                                                              on a thread of the backend's
//
// Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/memory/destination.h"
#include "daemon/model/backend_info.h"
#include "daemon/model/encoded_image.h"
#include "daemon/model/geometry.h"
#include "daemon/model/stop_flag.h"
#include "proto/base/batch_choices.h"
#include "proto/base/bytes.h"
#include "proto/base/error.h"
#include "proto/base/recipe.h"
#include "proto/base/result.h"

namespace millrace {

// One image to make. `out`: exactly image_bytes(recipe, geometry.output()); written even on error (with anything). Every
// backend writes what the host can address; the rest is kUnsupported to it unless the memory is a device's of its own.
struct SampleTask {
  std::uint32_t index = 0;  // comes back in SampleOutcome
  EncodedImage image;
  SampleGeometry geometry;
  Destination out;
};

struct SampleOutcome {
  std::uint32_t index = 0;
  // kInvalid: broken data; kUnsupported: another backend may; kUnavailable: device lost, nothing wrong with the sample;
  // kCancelled: stopped before it began; kDeadline: took longer than the limit.
  std::optional<Error> error;
  std::chrono::microseconds queued{0};
  std::chrono::microseconds decode{0};
  std::chrono::microseconds transform{0};  // resampling and storing; estimated where they take turns with decoding
};

struct DecodeJob {
  std::vector<SampleTask> tasks;
  std::shared_ptr<const Recipe> recipe;
  Fidelity fidelity = Fidelity::kExact;
  std::shared_ptr<const StopFlag> stop;  // checked between samples
  // What `out` points into. Shared: a session may be closed while lanes still write.
  std::shared_ptr<const void> keep_alive;
  // The tasks come back so that kUnavailable and kUnsupported samples can go elsewhere without fetching them again.
  std::function<void(std::vector<SampleTask>, std::vector<SampleOutcome>)> done;
};

class Backend {
 public:
  virtual ~Backend() = default;  // shuts down first

  virtual BackendInfo info() const = 0;
  virtual bool lost() const = 0;  // the device is gone: every job gets kUnavailable

  // How many jobs it wants queued or running at the same time to be busy, and at most accepts.
  virtual std::uint32_t depth() const = 0;

  // Never blocks. false: depth() jobs are in it or it is shut down; `job` is then left as it was.
  [[nodiscard]] virtual bool try_submit(DecodeJob&& job) = 0;

  // Running samples finish, queued ones come back as kCancelled; returns when every `done` has been called. Idempotent.
  virtual void shutdown() = 0;
};

}  // namespace millrace
