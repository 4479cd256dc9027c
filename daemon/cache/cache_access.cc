#include "daemon/cache/cache_access.h"

#include <utility>

namespace millrace {

void CacheAccess::find() {
  const bool packed = cache_.keeps(CachedKind::kPacked, image_.wish),
             tensor = cache_.keeps(CachedKind::kTensor, image_.wish);
  if (!packed && !tensor) {
    if (image_.wish.most >= CacheUse::kPacked) advised_.unpacked = WhyUnpacked::kSwitchedOff;
    return;
  }
  key_ = millrace::key_of(image_, cache_.seed());
  if (!image_.kept) cache_.asked(key_, image_.wish.member);
  if (!image_.kept && !(tensor && find(CachedKind::kTensor)) && packed) find(CachedKind::kPacked);
  if (image_.kept && image_.kept->kind == CachedKind::kTensor) return;
  if (tensor) cache_.counts().missed(CachedKind::kTensor);
  if (packed && !image_.kept) cache_.counts().missed(CachedKind::kPacked);
  advised_ = cache_.advise(image_, key_, tensor_bytes_);
}

bool CacheAccess::find(CachedKind kind) {
  std::optional<CachedEntry> entry = cache_.find(key_of(kind), kind, image_.wish.member);
  if (!entry) return false;
  if (!is_of_image(*entry)) {
    cache_.counts().rejected(kind);
    cache_.forget(key_of(kind), kind);
    return false;
  }
  image_.kept = CachedForm{kind, entry->bytes};
  if (image_.stable && !entry->stable) {  // from now on without reading the file
    entry->stable = true;
    cache_.store(key_of(kind), kind, *std::move(entry), file_facts(image_, kind));
  }
  return true;
}

// Bytes without an identity are their own key.
bool CacheAccess::is_of_image(const CachedEntry& entry) {
  if (!image_.identity || (image_.stable && entry.stable)) return true;
  if (!contents_) contents_ = digest_of(image_.bytes.view(), cache_.seed());
  return entry.contents == *contents_;
}

void CacheAccess::reject() {
  const CachedKind kind = image_.kept->kind;
  cache_.counts().rejected(kind);
  cache_.forget(key_of(kind), kind);
  image_.kept.reset();
}

CacheKey CacheAccess::key_of(CachedKind kind) const {
  return kind == CachedKind::kTensor ? tensor_key_of(key_, image_.wish.tensor_of) : key_;
}

bool keep(ImageCache& cache, const EncodedImage& image, const CacheKey& key, CachedKind kind, CachedBytes picture) {
  const CacheKey place = kind == CachedKind::kTensor ? tensor_key_of(key, image.wish.tensor_of) : key;
  CachedEntry entry{.bytes = std::move(picture),
                    .info = image.info,
                    .contents = digest_of(image.bytes.view(), cache.seed()),
                    .stable = image.stable,
                    .member = image.wish.member,
                    .savings = savings_of(kind, image.identity ? image.identity->bytes() : image.bytes.size(),
                                          image.kept ? Beside::kPacked : Beside::kIndex)};
  entry.info.orientation = image.orientation_in_file;
  return cache.store(place, kind, std::move(entry), file_facts(image, kind));
}

}  // namespace millrace
