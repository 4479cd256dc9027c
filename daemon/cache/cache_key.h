// Under what something is kept of a file: a fingerprint of the file's identity, or of the bytes themselves and of whose
// they are where there is no file or its identity cannot be relied upon. 128 bits of XXH3, seeded, so that nobody who
// does not know the seed can make two that are equal. Values; thread-safe: plain functions.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>

#include "daemon/model/files/file_identity.h"
#include "proto/base/bytes.h"

namespace millrace {

struct EncodedImage;

struct CacheKey {
  static constexpr std::uint64_t kShards = 16;

  std::uint64_t low = 0;
  std::uint64_t high = 0;

  // The number that an index carries to say whose it is (kernels/jpeg/seek_index.h).
  std::uint64_t owner() const { return low ^ high; }
  // The same for a file and all tensors that are made of it.
  std::size_t shard() const { return high % kShards; }
  friend bool operator==(const CacheKey&, const CacheKey&) = default;
};

// A file that several users may read has one key for all of them.
CacheKey key_of(const FileIdentity& identity, std::uint64_t seed);
// Each user's own: nobody finds out what bytes another one has sent. Reads all of them, at some 20 GB/s.
CacheKey key_of(ByteView contents, std::uint32_t user, std::uint64_t seed);
// By the identity where there is one. REQUIRES: an identity, or the bytes.
CacheKey key_of(const EncodedImage& image, std::uint64_t seed);

// Of a tensor that is made of what `file` stands for: `tensor_of` stands for all else that decides its bytes.
CacheKey tensor_key_of(const CacheKey& file, std::uint64_t tensor_of);

// Tells the contents of one file at two times apart. Reads all of them, at some 20 GB/s.
std::uint64_t digest_of(ByteView contents, std::uint64_t seed);

}  // namespace millrace
