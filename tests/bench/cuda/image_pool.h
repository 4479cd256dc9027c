// Images in pinned host memory, one behind the other as a loader would have put them, with what a caller knows of them:
// size and, once made, seek index. Immutable once made.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "kernels/cuda/plan/plan.h"
#include "tests/bench/cuda/gpu_memory.h"
#include "tests/bench/cuda/image_files.h"

namespace millrace::kernels::cuda::bench {

struct PooledImage {
  std::size_t at = 0, bytes = 0;  // in the pool
  Size size;
  const std::vector<std::uint8_t>* index = nullptr;
};

class ImagePool {
 public:
  // `files`, over and over, until there are `images`. Those that are no JPEG images for the kernels are left out.
  ImagePool(const std::vector<ImageFile>& files, std::size_t images);

  std::size_t size() const { return images_.size(); }
  const PooledImage& image(std::size_t i) const { return images_[i]; }
  jpeg::FileBytes file(std::size_t i) const { return {memory_.as<std::uint8_t>() + images_[i].at, images_[i].bytes}; }
  // Of images first .. first + count - 1, in the pool.
  std::size_t begin_of(std::size_t first) const { return images_[first].at; }
  std::size_t bytes_of(std::size_t first, std::size_t count) const {
    return images_[first + count - 1].at + images_[first + count - 1].bytes - images_[first].at;
  }
  const std::byte* data() const { return memory_.data(); }
  std::size_t distinct() const { return indexes_.size(); }

  static constexpr std::uint64_t kIndexOwner = 1;

 private:
  PinnedMemory memory_;
  std::vector<PooledImage> images_;
  std::vector<std::vector<std::uint8_t>> indexes_;  // of each distinct image, made by the CPU's decoder
};

}  // namespace millrace::kernels::cuda::bench
