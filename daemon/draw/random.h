// Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2,
// 3", SC 2011). A draw is a pure function of its key and position, so no state has to be saved or ordered. The streams
// are part of the product's contract: a change breaks everybody's resumption. Immutable.
//
//   hidden           = philox(counter = epoch, sample; key = seed)                      128 bits
//   block b of a use = philox(counter = hidden[2], hidden[3], use + 2^16 x view, b; key = hidden[0], hidden[1])
//
// Philox permutes its counters under every key, so for one seed each (epoch, sample) has its own `hidden`, and each
// (epoch, sample, view, use, b) its own pair of key and counter: no two draws of a seed ever share a block. Words are little
// end first: epoch's lower half, then its upper.
#pragma once

#include <array>
#include <cstdint>

#include "daemon/model/random_key.h"

namespace millrace {

// The block at `counter` under `key`, checked against the authors' known answers.
std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

// The numbers of one key, in order. `use` keeps what is drawn for one view of a sample apart: boxes, flips, shuffles
// (whose key has sample 0), erased rectangles, their noise, random sizes and filters, places of crops and of padding, and each step of augmentation. 2^34 numbers a stream. Thread-bound(its
// owner).
class RandomStream {
 public:
  enum class Use : std::uint32_t {
    kCrop = 1,
    kFlip = 2,
    kShuffle = 3,
    kErase = 4,
    kNoise = 5,
    kCropPlace = 6,
    kPadPlace = 7,
    kResize = 8,
    kFilter = 9,
    kFirstStep = 256
  };

  // Of the recipe's step `number`, counted as step.proto says.
  static constexpr Use use_of_step(std::uint32_t number) {
    return Use{static_cast<std::uint32_t>(Use::kFirstStep) + number};
  }

  RandomStream(RandomKey key, Use use);

  std::uint32_t next();                      // uniform over all values
  double uniform();                          // [0, 1), 53 bits
  double uniform(double low, double high);   // [low, high); low when they are equal. REQUIRES: low <= high
  std::uint64_t below(std::uint64_t bound);  // [0, bound), unbiased (Lemire 2019). REQUIRES: bound > 0
  double normal();  // of the standard normal distribution: Box, Muller 1958, one of two numbers

 private:
  std::array<std::uint32_t, 4> hidden_;
  std::uint32_t use_;
  std::uint32_t block_ = 0;
  std::uint32_t used_ = 4;  // of numbers_
  std::array<std::uint32_t, 4> numbers_{};
};

}  // namespace millrace
