#include "daemon/cache/cache_key.h"

#include <xxhash.h>

#include "daemon/model/bytes/encoded_image.h"

namespace millrace {
namespace {

// Seeds of one secret for uses that must not meet.
constexpr std::uint64_t kDigests = 0x9E3779B97F4A7C15, kUsers = 0xD6E8FEB86659FD93;

CacheKey key_from(const XXH128_hash_t& hash) {
  return {hash.low64, hash.high64};
}

}  // namespace

CacheKey key_of(const FileIdentity& identity, std::uint64_t seed) {
  const std::int64_t fields[] = {static_cast<std::int64_t>(identity.device),
                                 static_cast<std::int64_t>(identity.inode),
                                 static_cast<std::int64_t>(identity.size),
                                 identity.modified,
                                 identity.changed,
                                 static_cast<std::int64_t>(identity.part_begin),
                                 static_cast<std::int64_t>(identity.part_size)};
  return key_from(XXH3_128bits_withSeed(fields, sizeof fields, seed));
}

CacheKey key_of(ByteView contents, std::uint32_t user, std::uint64_t seed) {
  const XXH128_hash_t bytes = XXH3_128bits_withSeed(contents.data(), contents.size(), ~seed);
  const std::uint64_t fields[] = {bytes.low64, bytes.high64, contents.size(), user};
  return key_from(XXH3_128bits_withSeed(fields, sizeof fields, seed ^ kUsers));
}

CacheKey key_of(const EncodedImage& image, std::uint64_t seed) {
  return image.identity ? key_of(*image.identity, seed) : key_of(image.bytes.view(), image.user, seed);
}

CacheKey tensor_key_of(const CacheKey& file, std::uint64_t tensor_of) {
  const std::uint64_t fields[] = {file.low, file.high};
  CacheKey key = key_from(XXH3_128bits_withSeed(fields, sizeof fields, tensor_of));
  key.high = key.high - key.shard() + file.shard();
  return key;
}

std::uint64_t digest_of(ByteView contents, std::uint64_t seed) {
  return XXH3_64bits_withSeed(contents.data(), contents.size(), seed ^ kDigests);
}

}  // namespace millrace
