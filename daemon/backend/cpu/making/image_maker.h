// One sample from its encoded bytes to its place in a tensor, in the caller's thread: decode what the window depends
// on, orient, resample, augment, store. The CPU backend's lanes and the fake backend do nothing else with a sample, and a plain
// loop can.
//
//   ImageWorkspace workspace;                                              // one a thread
//   const SampleOutcome outcome = make_image(task, recipe, limits, workspace);
#pragma once

#include <list>
#include <optional>
#include <string>

#include "daemon/backend/backend.h"
#include "daemon/backend/cpu/decoders/library_decoder.h"
#include "daemon/backend/cpu/decoders/pixel_buffer.h"
#include "daemon/backend/cpu/making/augmentation.h"
#include "daemon/cache/image_cache.h"
#include "daemon/model/limits.h"
#include "daemon/model/stop_flag.h"
#include "kernels/base/target.h"
#include "kernels/cpu/jpeg/decoder.h"
#include "kernels/cpu/plane/plane_resample.h"
#include "kernels/cpu/store.h"
#include "kernels/cpu/workspace.h"
#include "kernels/packed/packed_image.h"

namespace millrace {

// The ways in which a lane can decode: instruction set, bit streams that work on an image, and how pieces that a seek
// index knows are decoded. All give the same pixels, but that kScalar is exact where a request is content with
// Fidelity::kFast. Values.
struct CpuVariant {
  kernels::Target target = kernels::best_target();  // kScalar: libjpeg-turbo decodes JPEG without restart markers
  kernels::jpeg::DecodingWay way = kernels::jpeg::usual_way(target);
};

// "avx512 with 2 streams, indexed pieces in lanes"; "scalar".
inline std::string name_of(const CpuVariant& variant) {
  const std::string target(kernels::name_of(variant.target));
  if (variant.target == kernels::Target::kScalar) return target;
  const bool two = variant.way.streams == kernels::jpeg::Streams::kTwo;
  const bool lanes = variant.way.segments == kernels::jpeg::SegmentPath::kVectors;
  return target + (two ? " with 2 streams" : " with 1 stream") + ", indexed pieces " +
         (lanes ? "in lanes" : "in turns");
}

// Who decodes JPEG files; packed forms are our own decoder's in any case. The pixels are the same.
enum class JpegPath : std::uint8_t {
  kFastest,       // our own decoder where the file is for it, and the processor has AVX2 or the file restart markers
  kLibjpegTurbo,  // for comparing
};

// What a thread keeps from sample to sample: buffers, coefficient tables, the store tables of the last recipes. Results
// do not depend on it. Thread-bound(the lane that owns it).
class ImageWorkspace {
 public:
  // REQUIRES: the processor has the variant's target.
  // `cache`: of the seek indexes to use and to add to; nullptr: none. `libraries`: who runs the decoders that are not
  // ours; nullptr: this thread. Both outlive this.
  explicit ImageWorkspace(JpegPath path = JpegPath::kFastest, const CpuVariant& variant = {},
                          ImageCache* cache = nullptr, LibraryDecoder* libraries = nullptr);

  PixelBuffer& decoded() { return decoded_; }
  PixelBuffer& turned() { return turned_; }
  kernels::Workspace& arithmetic() { return *kernels_; }
  // nullptr: libjpeg-turbo decodes everything.
  kernels::jpeg::Decoder* jpeg() { return path_ == JpegPath::kFastest ? &jpeg_ : nullptr; }
  kernels::jpeg::Decoder& packed_decoder() { return jpeg_; }
  // The packed form at hand.
  kernels::packed::PackedImage& packed() { return packed_; }
  kernels::Target target() const { return variant_.target; }
  bool has_vectors() const { return variant_.target != kernels::Target::kScalar; }
  kernels::PlaneResampler& planes() { return planes_; }
  StepWorkspace& steps() { return steps_; }
  ImageCache* cache() { return cache_; }
  LibraryDecoder& libraries() { return libraries_ != nullptr ? *libraries_ : in_lane_; }
  // For whom what is made from here on is.
  Origin::Audience& audience() { return audience_; }
  // Set by a seek index that was of use; the caller that asks sets it back.
  bool& index_helped() { return index_helped_; }
  // Whether a seek index is made where there is none.
  bool& makes_index() { return makes_index_; }
  // Built when it is not one of the last few asked for; good until the next call.
  const kernels::StoreTable& store_table(const Recipe& recipe);
  // Gives back what a giant image of `pixel_bytes` left behind.
  void trim(std::size_t pixel_bytes);

 private:
  const JpegPath path_;
  const CpuVariant variant_;
  ImageCache* const cache_;
  DecodingInLane in_lane_;
  LibraryDecoder* const libraries_;  // nullptr: in_lane_
  Origin::Audience audience_ = Origin::Audience::kUser;
  bool index_helped_ = false;
  bool makes_index_ = true;
  PixelBuffer decoded_;
  PixelBuffer turned_;
  std::optional<kernels::Workspace> kernels_;
  kernels::jpeg::Decoder jpeg_;
  kernels::packed::PackedImage packed_;
  kernels::PlaneResampler planes_;
  StepWorkspace steps_;
  std::list<kernels::StoreTable> tables_;  // the last used first
};

// Fills task.out. `fast`: within the bound that README.md states, exact where it has no way of its own. The outcome has
// the task's index, decode and transform times, and the reason when it failed: kInvalid, kUnsupported, kDeadline,
// kExhausted; kCancelled: `stop`, which is looked at wherever the clock is, was stopped; kInternal when the task
// contradicts itself. Never reads or writes outside the task's bytes, whatever is in them. Steady state allocates only
// what the decoding libraries allocate for themselves.
//
// An image of which a packed form is kept is decoded from that, and its bytes, which may be none, count for nothing. The
// tensor is the file's (of `fast` README.md names two exceptions). kInternal, too: the form is not one of this image;
// the file has to be read then.
SampleOutcome make_image(const SampleTask& task, const Recipe& recipe, const SampleLimits& limits,
                         ImageWorkspace& workspace, Fidelity fidelity = Fidelity::kExact, const StopFlag& stop = {});

}  // namespace millrace
