// Under what a seek index is kept: a fingerprint of the file's identity, or of the bytes themselves where there is no
// file or its identity cannot be relied upon. 128 bits of XXH3, seeded, so that nobody who does not know the seed can
// make two that are equal. Values; thread-safe: plain functions.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>

#include "daemon/model/file_identity.h"
#include "proto/base/bytes.h"

namespace millrace {

struct IndexKey {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  // The number that an index carries to say whose it is (kernels/jpeg/seek_index.h).
  std::uint64_t owner() const { return low ^ high; }
  friend bool operator==(const IndexKey&, const IndexKey&) = default;
};

IndexKey key_of(const FileIdentity& identity, std::uint64_t seed);
// Reads all of the bytes, at some 20 GB/s.
IndexKey key_of(ByteView contents, std::uint64_t seed);

}  // namespace millrace
