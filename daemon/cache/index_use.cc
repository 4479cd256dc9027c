#include "daemon/cache/index_use.h"

#include <utility>

namespace millrace {
namespace {

constexpr std::size_t kSmallest = 4096;  // bytes of a file worth an index

}  // namespace

kernels::jpeg::Seeking* IndexUse::begin() {
  if (bytes_.size() < kSmallest) return nullptr;
  key_ = identity_ ? key_of(*identity_, cache_.seed()) : key_of(bytes_, cache_.seed());
  known_ = cache_.find(key_);
  seeking_ = {};
  if (known_) seeking_.index_untrusted = *known_;
  seeking_.owner = key_.owner();
  return &seeking_;
}

void IndexUse::end(kernels::jpeg::Outcome outcome) {
  using kernels::jpeg::SeekUse;
  if (bytes_.size() < kSmallest || seeking_.use == SeekUse::kMarkers) return;
  const bool used = seeking_.use == SeekUse::kUsed || seeking_.use == SeekUse::kExtended;
  cache_.counters().add(used ? MetricId::index_hits : MetricId::index_misses);
  if (seeking_.use == SeekUse::kRejected) {
    cache_.counters().add(MetricId::index_rejected);
    cache_.forget(key_);
  }
  if (outcome == kernels::jpeg::Outcome::kDecoded && !seeking_.made.empty())
    cache_.store(key_, std::move(seeking_.made));
}

}  // namespace millrace
