// Stage 5: what every backend does. Encoded bytes go in, tensor bytes come out, written straight into the slot;
// asynchronously, because a GPU or an FPGA is, and the CPU's lanes then fit as well. daemon/doc/add_a_backend.md is the
// guide for writers, tests/conformance the judge.
//
//   can_make(sample)? ──▶ yes, or why not
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

#include "daemon/backend/health.h"
#include "daemon/memory/destination.h"
#include "daemon/memory/tensor_memory.h"
#include "daemon/model/backend_info.h"
#include "daemon/model/bytes/encoded_image.h"
#include "daemon/model/geometry.h"
#include "daemon/model/owner.h"
#include "daemon/model/stop_flag.h"
#include "daemon/observe/stage_times.h"
#include "proto/base/batch_choices.h"
#include "proto/base/bytes.h"
#include "proto/base/error.h"
#include "proto/base/recipe.h"
#include "proto/base/result.h"
#include "proto/base/why_unpacked.h"

namespace millrace {

// One image to make, of its bytes or of what is kept of it. `out`: exactly image_bytes(recipe, geometry.output()); written even on error (with anything). Every
// backend writes what the host can address; the rest is kUnsupported to it unless the memory is a device's of its own.
struct SampleTask {
  std::uint32_t index = 0;  // comes back in SampleOutcome
  EncodedImage image;
  SampleGeometry geometry;
  Destination out;                          // of views, the first one
  std::vector<Destination> further_outs{};  // of the views after it

  const Destination& out_of_view(std::size_t view) const { return view == 0 ? out : further_outs[view - 1]; }
};

struct SampleOutcome {
  std::uint32_t index = 0;
  // kInvalid: broken data; kUnsupported: another backend may; kUnavailable: device lost, nothing wrong with the sample;
  // kCancelled: stopped before it was made; kDeadline: took longer than the limit.
  std::optional<Error> error;
  // With an error: what stood in for the image's bytes (EncodedImage::kept) is no use, and there are no bytes. It is
  // read, and comes again with them. A backend that takes no kept forms says so of each that comes without bytes.
  bool read_again = false;
  // The job had had its turn (DecodeJob::turn), or the device is set up for others by now: nothing else is said, and it
  // comes again, can_make() first.
  bool not_begun = false;
  WhyUnpacked unpacked{};  // why no packed form of the file is kept; a backend that keeps none says nothing
  std::chrono::nanoseconds queued{0};
  std::chrono::nanoseconds decode{0};     // of the lane, all but `transform`
  std::chrono::nanoseconds transform{0};  // resampling and storing; estimated where they take turns with decoding
};

// What a job took beside its outcomes. Written by the backend until done(), read from there on.
struct JobUse {
  std::chrono::nanoseconds lane_cpu{0};     // of the thread, of a CPU lane
  std::chrono::nanoseconds process_cpu{0};  // of processes that worked for the lane
  // What first accesses of the same files would have taken more than images that were made of something kept; below 0
  // where these took longer.
  std::chrono::nanoseconds saved{0};
  StageTimes stages;  // of a CPU lane: outcomes' decode and transform, told further
};

struct DecodeJob {
  std::vector<SampleTask> tasks;
  std::shared_ptr<const Recipe> recipe;
  Fidelity fidelity = Fidelity::kExact;
  bool pinned = false;                   // as SampleFacts says it
  Owner owner{};                         // whose work it is, for recordings
  std::shared_ptr<const StopFlag> stop;  // checked between samples, and by lanes within them
  // Once a lane has been at it for so long, samples that it has not begun may come back as not_begun: what was expected
  // to be short was not, and others may have to wait. The first one always is begun.
  std::chrono::nanoseconds turn = std::chrono::nanoseconds::max();
  // Of a small batch of priority high: it goes before jobs that are not and wait, and those that run may end as after
  // `turn`.
  bool urgent = false;
  std::shared_ptr<JobUse> use;  // shared with who gave the job; null: nobody wants to know
  // What `out` points into. Shared: a session may be closed while lanes still write.
  std::shared_ptr<const void> keep_alive;
  // The tasks come back so that kUnavailable and kUnsupported samples can go elsewhere without fetching them again.
  std::function<void(std::vector<SampleTask>, std::vector<SampleOutcome>)> done;
};

// What is known of a sample before it is decoded. Borrowed for a call.
struct SampleFacts {
  const SourceInfo& source;  // format, size, memory, and what the file's header says that it has
  const SampleGeometry& geometry;
  Fidelity fidelity = Fidelity::kExact;
  std::optional<CachedKind> kept{};  // what stands in for the file, whose bytes may then not be there
  bool pinned = false;               // the request names this backend or its type: nobody else makes it
};

// What keeps a backend busy. Constant.
struct QueueDepth {
  std::uint32_t jobs = 1;     // queued or running at the same time; it accepts no more, but for `urgent` further ones
  std::uint32_t at_once = 1;  // of these, worked on at the same time: lanes, or what a device runs side by side
  // Samples a job: with fewer than `few` the next job may come too late, more than `most` are not worth waiting for.
  std::uint32_t few = 1, most = 1;
  std::uint32_t urgent = 0;  // jobs beyond `jobs`, of urgent ones alone
};

class Backend {
 public:
  virtual ~Backend() = default;  // shuts down first

  virtual BackendInfo info() const = 0;
  virtual QueueDepth queue_depth() const = 0;

  // Whether it takes such a sample, asked before there is a job. kUnsupported: no, and why not, for people ("it decodes
  // no progressive JPEG"). A yes is no promise: a file may show only later that it is none for this backend. Called for
  // every sample, on the control thread: allocates nothing for a yes.
  virtual Result<void> can_make(const SampleFacts& facts, const Recipe& recipe) const = 0;

  // Once, before the first job: `listener` is told when the device is lost and when it is ready again, on any thread, up
  // to the end of shutdown(). Of a loss before what it loses comes back; of a device that is lost already at once, here.
  // While it is lost, every sample gets kUnavailable.
  virtual void listen(HealthListener listener) = 0;

  // Never blocks. false: as many as queue_depth() says are in it, or it is shut down; `job` is then left as it was.
  [[nodiscard]] virtual bool try_submit(DecodeJob&& job) = 0;

  // Its own, in which sessions may have their tensors; BackendInfo::memories then has its number. nullptr: none. It is
  // there as long as the backend.
  virtual TensorMemory* memory() { return nullptr; }

  // Running samples finish, queued ones come back as kCancelled; returns when every `done` has been called. Idempotent.
  virtual void shutdown() = 0;
};

}  // namespace millrace
