// The requests of a batch of training crops, and where its files lie. Thread-bound(its owner).
#pragma once

#include <random>
#include <vector>

#include "tests/bench/cuda/figures.h"

namespace millrace::kernels::cuda::bench {

class TrainRequests {
 public:
  TrainRequests(const ImagePool& pool, std::size_t batch, Start start, std::uint32_t seed)
      : pool_(pool), start_(start), random_(seed), requests_(batch) {}

  // Of the batch at `number`, which counts round the pool; crops and flips are drawn anew each time.
  std::span<const ImageRequest> draw(std::size_t number) {
    first_ = number % batches() * requests_.size();
    const std::size_t begin = pool_.begin_of(first_);
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      const PooledImage& image = pool_.image(first_ + i);
      requests_[i] = {.file_untrusted = pool_.file(first_ + i),
                      .at = image.at - begin,
                      .crop = random_resized_crop(image.size, random_),
                      .flip = (random_() & 1) != 0 ? Flip::kHorizontal : Flip::kNone};
      if (start_ == Start::kIndexed) {
        requests_[i].index_untrusted = *image.index;
        requests_[i].index_owner = ImagePool::kIndexOwner;
      }
    }
    return requests_;
  }
  std::span<const std::byte> encoded() const {
    return {pool_.data() + pool_.begin_of(first_), pool_.bytes_of(first_, requests_.size())};
  }
  std::size_t batches() const { return pool_.size() / requests_.size(); }

 private:
  const ImagePool& pool_;
  const Start start_;
  std::mt19937 random_;
  std::vector<ImageRequest> requests_;
  std::size_t first_ = 0;
};

}  // namespace millrace::kernels::cuda::bench
