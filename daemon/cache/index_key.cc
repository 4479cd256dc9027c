#include "daemon/cache/index_key.h"

#include <xxhash.h>

namespace millrace {
namespace {

IndexKey key_from(const XXH128_hash_t& hash) {
  return {hash.low64, hash.high64};
}

}  // namespace

IndexKey key_of(const FileIdentity& identity, std::uint64_t seed) {
  const std::int64_t fields[] = {static_cast<std::int64_t>(identity.device), static_cast<std::int64_t>(identity.inode),
                                 static_cast<std::int64_t>(identity.size), identity.modified, identity.changed};
  return key_from(XXH3_128bits_withSeed(fields, sizeof fields, seed));
}

IndexKey key_of(ByteView contents, std::uint64_t seed) {
  return key_from(XXH3_128bits_withSeed(contents.data(), contents.size(), ~seed));
}

}  // namespace millrace
