// What was kept of a file, asked for before the file is read. Thread-safe, as its implementation says.
#pragma once

#include <cstdint>
#include <optional>

#include "daemon/model/bytes/cached_bytes.h"
#include "daemon/model/bytes/encoded_image.h"
#include "daemon/model/files/file_identity.h"

namespace millrace {

// Stands in for a file's bytes.
struct CachedImage {
  CachedForm kept;  // kPacked or kTensor
  SourceInfo info;  // with the orientation that the file says
};

class CacheLookup {
 public:
  virtual ~CacheLookup() = default;

  // nullopt: nothing, read the file. REQUIRES: the file is open with the rights of the caller, and its identity is
  // stable (EncodedImage::stable). May read from a disk.
  virtual std::optional<CachedImage> find(const FileIdentity& identity, const CacheWish& wish) = 0;
};

}  // namespace millrace
