// A lane's samples by way of the cache: what was kept of an image stands in for its bytes, and what is to be kept of it
// is made of them.
//
//   make() ──▶ kept tensor: copied      ──▶ outcome ─ ─ ─▶ the job is handed over
//          ├─▶ kept packed form: decoded                        │
//          ├─▶ of a dataset, to be packed now: packed, and      │
//          │   decoded from that                                ▼
//          └─▶ bytes: decoded ──▶ a tensor to keep: copied ──▶ finish(): packed forms that may wait until now
//
// Jobs that use one dataset want the same image at the same moment where they have the same order: the lane that comes
// second makes its other samples first (is_being_made()), and finds what the first one kept.
//
// Thread-bound(a lane).
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "daemon/backend/backend.h"
#include "daemon/backend/cpu/making/image_maker.h"
#include "daemon/cache/cache_access.h"
#include "daemon/model/in_force.h"
#include "daemon/model/limits.h"
#include "kernels/packed/encoder.h"

namespace millrace {

class CachedMaker {
 public:
  // Both outlive this. Nothing is kept if `workspace` has no cache.
  CachedMaker(ImageWorkspace& workspace, InForce<Limits> limits, kernels::Target target);

  // make_image(), from what is kept if there is something. A sample whose kept form is no use is made of its bytes, or
  // has SampleOutcome::read_again. May take the bytes of a sample that it has made.
  SampleOutcome make(SampleTask& task, const Recipe& recipe, Fidelity fidelity, const StopFlag& stop = {});

  // Whether another lane makes at this moment what make() would like to find in the cache: the image's packed form, or
  // the very tensor. That lane learns that it is wanted.
  bool is_being_made(const SampleTask& task);

  // What make() took since it was last asked, beyond decoding and resampling.
  struct Taken {
    StageTimes stages;                  // steps, copies of kept tensors, and what the cache is given
    std::chrono::nanoseconds saved{0};  // as JobUse
  };
  Taken take();

  // Packs what make() has set aside for it; after the samples were handed over, for it takes as long as making one or two
  // of them each. false: there is nothing. `idle`: whether no sample waits for a lane; `stopped`: whether to leave it. Asked before each image.
  bool finish(const std::function<bool()>& idle, const std::function<bool()>& stopped);

 private:
  // What make() was given beside the task.
  struct Order {
    const Recipe& recipe;
    Fidelity fidelity;
    const StopFlag& stop;
  };
  struct Packed {
    CachedBytes form;        // nullptr: somebody else is at it or has done it, or it cannot be packed
    bool by_index = false;   // a seek index was there
    WhyUnpacked unpacked{};  // why none is kept; kNotSaid: it is, or somebody else is at it
  };

  SampleOutcome make_of_what_is_there(SampleTask& task, CacheAccess& use, const Order& order);
  SampleOutcome make_packed_first(SampleTask& task, CacheAccess& use, const Order& order);
  SampleOutcome make_once(const SampleTask& task, const Order& order);
  // What was of use to make_once(); nullopt: the file alone.
  std::optional<CachedKind> kind_used(const EncodedImage& image);
  void count(const EncodedImage& image, std::optional<CachedKind> used, const SampleOutcome& outcome);
  StageTimes& stages() { return workspace_.steps().times(); }
  // So that other lanes may leave it to this one. nullopt: it is none that is kept, or another lane has it.
  std::optional<BeingMade::Turn> turn_at_tensor(const SampleTask& task, const CacheKey& key);
  void keep_tensor(const SampleTask& task, const CacheKey& key);
  void set_aside(SampleTask& task, CacheAccess& use, const StopFlag& stop);
  Packed pack(const EncodedImage& image, const CacheKey& key, const StopFlag& stop = {});

  ImageWorkspace& workspace_;
  ImageCache* const cache_;
  const InForce<Limits> limits_;
  kernels::packed::Encoder encoder_;
  std::vector<Unmade> unmade_;
  std::size_t unmade_bytes_ = 0;
  std::chrono::nanoseconds saved_{0};
  bool lacks_process_ = false;  // what packed last found no process for it
};

}  // namespace millrace
