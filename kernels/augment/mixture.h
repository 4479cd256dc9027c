// A weighted sum of pictures on its way: what kMixStart, kMixAdd and kMixEnd do. Internal to kernels/augment.
// Thread-bound(its owner).
#pragma once

#include <array>
#include <cstring>
#include <utility>

#include "kernels/augment/kernels.h"
#include "kernels/augment/plane_memory.h"

namespace millrace::kernels::augment {

class Mixture {
 public:
  // For planes of another picture: `stride` bytes each, and kSlack behind the last.
  void prepare(std::size_t stride) {
    stride_ = stride;
    ready_ = 0;
    is_stale_ = false;
  }

  // `planes`: the picture, in the first `padded` bytes of each. Throws std::bad_alloc.
  void start(const Planes& planes, std::size_t padded, float weight) {
    padded_ = padded;
    count_ = 0;
    copy(planes, keep(weight));
  }

  // Takes the planes, and gives others for them, with what restore() puts there. Throws std::bad_alloc.
  void add(Planes& planes, float weight) {
    std::swap(planes, keep(weight));
    is_stale_ = true;
  }

  // The picture as it was at the start, where add() took it.
  void restore(const Planes& planes) {
    if (std::exchange(is_stale_, false)) copy(kept_[0], planes);
  }

  // The sum, blended into the start by `factor`. The planes may become others.
  void end(const Kernels& kernels, float factor, Planes& planes) {
    std::array<Weighted, kMostMixed + 1> weighted{};
    for (std::size_t c = 0; c < 3; ++c) {
      for (std::size_t i = 0; i < count_; ++i) weighted[i] = {kept_[i].plane[c], weights_[i]};
      kernels.mix(weighted.data(), count_, padded_, planes.plane[c]);
    }
    is_stale_ = false;
    if (factor == 1) return;
    Blend blend;
    kernels.prepare(factor, blend);
    for (std::size_t c = 0; c < 3; ++c) kernels.blend(blend, planes.plane[c], padded_, kept_[0].plane[c]);
    std::swap(planes, kept_[0]);
  }

  std::size_t count() const { return count_; }  // of pictures in the sum

  std::size_t memory() const {
    std::size_t bytes = 0;
    for (const PlaneMemory& one : memory_) bytes += one.bytes();
    return bytes;
  }

 private:
  Planes& keep(float weight) {
    if (count_ == ready_) {  // later in a picture these planes may have become the picture's, and its own these
      memory_[count_].reserve(3 * stride_ + kSlack);
      kept_[count_] = memory_[count_].planes(0, stride_);
      ++ready_;
    }
    weights_[count_] = weight;
    return kept_[count_++];
  }

  void copy(const Planes& from, const Planes& to) const {
    for (std::size_t c = 0; c < 3; ++c) std::memcpy(to.plane[c], from.plane[c], padded_);
  }

  std::array<PlaneMemory, kMostMixed + 1> memory_;
  std::array<Planes, kMostMixed + 1> kept_{};
  std::array<float, kMostMixed + 1> weights_{};
  std::size_t count_ = 0, ready_ = 0;
  std::size_t stride_ = 0, padded_ = 0;
  bool is_stale_ = false;  // whether what the planes hold is of no use
};

}  // namespace millrace::kernels::augment
