#include "daemon/cache/index_use.h"

#include <utility>

namespace millrace {
namespace {

constexpr std::size_t kSmallest = 4096;  // bytes of a file worth an index

}  // namespace

kernels::jpeg::Seeking* IndexUse::begin() {
  if (image_.bytes.size() < kSmallest) return nullptr;
  key_ = key_of(image_, cache_.seed());
  seeking_ = {};
  if (!cache_.keeps_pictures(image_.wish)) cache_.asked(key_, image_.wish.member);  // CacheAccess says so of others
  if (const std::optional<CachedEntry> found = cache_.find(key_, CachedKind::kIndex, image_.wish.member)) {
    known_ = found->bytes;
    seeking_.index_untrusted = {reinterpret_cast<const std::uint8_t*>(known_->view().data()), known_->size()};
  }
  seeking_.owner = key_.owner();
  return known_ || makes_ ? &seeking_ : nullptr;
}

void IndexUse::end(kernels::jpeg::Outcome outcome) {
  using kernels::jpeg::SeekUse;
  if (image_.bytes.size() < kSmallest || seeking_.use == SeekUse::kMarkers) return;
  const bool used = seeking_.use == SeekUse::kUsed || seeking_.use == SeekUse::kExtended;
  Counters& counters = cache_.counts().counters();
  counters.add(used ? MetricId::index_hits : MetricId::index_misses);
  if (used) helped_ = true;
  if (!used) cache_.counts().missed(CachedKind::kIndex);
  if (seeking_.use == SeekUse::kRejected) {
    counters.add(MetricId::index_rejected);
    cache_.counts().rejected(CachedKind::kIndex);
    cache_.forget(key_, CachedKind::kIndex);
  }
  if (outcome == kernels::jpeg::Outcome::kDecoded && !seeking_.made.empty())
    cache_.store(key_, CachedKind::kIndex,
                 {.bytes = CachedBlock::copy_of(std::as_bytes(std::span(seeking_.made))),
                  .member = image_.wish.member,
                  .savings = savings_of(CachedKind::kIndex, image_.bytes.size())},
                 file_facts(image_, CachedKind::kIndex));
}

}  // namespace millrace
