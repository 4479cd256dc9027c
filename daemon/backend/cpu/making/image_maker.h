// One sample from its encoded bytes to its place in a tensor, in the caller's thread: decode what the window depends
// on, orient, resample, store. The CPU backend's lanes and the fake backend do nothing else with a sample, and a plain
// loop can.
//
//   ImageWorkspace workspace;                                              // one a thread
//   const SampleOutcome outcome = make_image(task, recipe, limits, workspace);
#pragma once

#include <list>
#include <optional>

#include "daemon/backend/backend.h"
#include "daemon/backend/cpu/decoders/pixel_buffer.h"
#include "daemon/backend/cpu/making/cpu_variant.h"
#include "daemon/cache/seek_cache.h"
#include "daemon/model/limits.h"
#include "kernels/cpu/jpeg/decoder.h"
#include "kernels/cpu/plane_resample.h"
#include "kernels/cpu/store.h"
#include "kernels/cpu/workspace.h"

namespace millrace {

// Who decodes JPEG. The pixels are the same.
enum class JpegPath : std::uint8_t {
  kFastest,       // our own decoder where the file is for it, and the processor has AVX2 or the file restart markers
  kLibjpegTurbo,  // for comparing
};

// What a thread keeps from sample to sample: buffers, coefficient tables, the store tables of the last recipes. Results
// do not depend on it. Thread-bound(the lane that owns it).
class ImageWorkspace {
 public:
  // REQUIRES: the processor has the variant's target.
  // `cache`: the seek indexes to use and to add to; nullptr: none. It outlives this.
  explicit ImageWorkspace(JpegPath path = JpegPath::kFastest, const CpuVariant& variant = {},
                          SeekCache* cache = nullptr);

  PixelBuffer& decoded() { return decoded_; }
  PixelBuffer& turned() { return turned_; }
  kernels::Workspace& arithmetic() { return *kernels_; }
  // nullptr: libjpeg-turbo decodes everything.
  kernels::jpeg::Decoder* jpeg() { return jpeg_ ? &*jpeg_ : nullptr; }
  bool has_vectors() const { return variant_.target != kernels::Target::kScalar; }
  kernels::PlaneResampler& planes() { return planes_; }
  SeekCache* cache() { return cache_; }
  // Built when it is not one of the last few asked for; good until the next call.
  const kernels::StoreTable& store_table(const Recipe& recipe);
  // Gives back what a giant image of `pixel_bytes` left behind.
  void trim(std::size_t pixel_bytes);

 private:
  const CpuVariant variant_;
  SeekCache* const cache_;
  PixelBuffer decoded_;
  PixelBuffer turned_;
  std::optional<kernels::Workspace> kernels_;
  std::optional<kernels::jpeg::Decoder> jpeg_;
  kernels::PlaneResampler planes_;
  std::list<kernels::StoreTable> tables_;  // the last used first
};

// Fills task.out. `fast`: within the bound that README.md states, exact where it has no way of its own. The outcome has
// the task's index, decode and transform times, and the reason when it failed: kInvalid, kUnsupported, kDeadline,
// kExhausted; kInternal when the task contradicts itself. Never reads or writes outside the task's bytes, whatever is
// in them. Steady state allocates only what the decoding libraries allocate for themselves.
SampleOutcome make_image(const SampleTask& task, const Recipe& recipe, const SampleLimits& limits,
                         ImageWorkspace& workspace, Fidelity fidelity = Fidelity::kExact);

}  // namespace millrace
