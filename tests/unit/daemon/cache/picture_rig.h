// What the tests of kept pictures share: images that are only bytes, and a cache. Functions for one thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "daemon/cache/cache_access.h"
#include "daemon/cache/image_cache.h"
#include "tests/support/host/temp_folder.h"

namespace millrace {

inline constexpr FileIdentity kFile{.device = 1, .inode = 2, .size = 4, .modified = 3, .changed = 4};
inline constexpr std::uint32_t kUser = 1000;

inline EncodedImage image_of(std::string_view contents, std::optional<FileIdentity> identity, bool stable) {
  EncodedImage image{.bytes = EncodedBytes(contents.size()), .info = {}};
  std::transform(contents.begin(), contents.end(), image.bytes.writable().begin(),
                 [](char c) { return static_cast<std::byte>(c); });
  image.info.stored = {8, 9};
  image.orientation_in_file = 6;
  image.identity = identity;
  image.stable = stable;
  image.user = kUser;
  return image;
}

// A cache in memory alone, or one start of a daemon after another in the same folder.
struct CacheRig {
  CacheRig() : CacheRig({.memory = 1_MiB, .disk = 0_B, .state_dir = ""}) {}
  explicit CacheRig(const TempFolder& folder, Bytes memory = 1_MiB, Bytes disk = 64_MiB)
      : CacheRig({.memory = memory, .disk = disk, .state_dir = folder.path()}) {}
  explicit CacheRig(const ImageCache::Options& options) : cache(options, counters) {
    cache.wait_for_disk(std::chrono::seconds(60));
  }

  void keep(const EncodedImage& image, CachedKind kind = CachedKind::kPacked) {
    millrace::keep(cache, image, key_of(image, cache.seed()), kind, CachedBlock::copy_of(image.bytes.view()));
  }
  // Whether what is kept stands in for the image.
  bool finds(EncodedImage image) {
    CacheAccess use(cache, image);
    use.find();
    return image.kept.has_value();
  }
  std::int64_t count(MetricId id) const { return counters.stored(id); }

  Counters counters;
  ImageCache cache;
};

}  // namespace millrace
