#include "daemon/cache/disk/disk_store.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace millrace {
namespace {

constexpr std::size_t kMostUses = std::size_t{1} << 20;  // not written down yet; more are forgotten

std::uint32_t now_in_seconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint32_t>(std::chrono::duration_cast<std::chrono::seconds>(now).count());
}

// So many that dropping the oldest one is no great loss.
std::uint64_t segment_size_for(Bytes most) {
  const std::uint64_t least = std::min((1_MiB).count, most.count / 8);
  return std::clamp(most.count / 128, least, std::max(least, (256_MiB).count));
}

}  // namespace

DiskStore::DiskStore(Options options, StoreFolder folder)
    : options_(std::move(options)),
      folder_(std::move(folder)),
      shared_{folder_, options_.seed, options_.read_at},
      segment_size_(segment_size_for(options_.most)) {}

DiskStore::~DiskStore() = default;

Result<std::unique_ptr<DiskStore>> DiskStore::open(Options options) {
  MILLRACE_TRY(StoreFolder folder, StoreFolder::open(options.folder));
  std::unique_ptr<DiskStore> store(new DiskStore(std::move(options), std::move(folder)));
  MILLRACE_TRY_VOID(store->look_around());
  store->add_up_taken();
  return store;
}

std::optional<DiskStore::Placed> DiskStore::find(const CacheKey& key, CachedKind kind) {
  bool counted = false;
  const std::uint32_t now = now_in_seconds();
  const std::optional<StoreIndex::Held> held = index_.find(key, kind, now, counted);
  if (!held) return std::nullopt;
  if (counted) {
    const MutexLock lock(mutex_);
    if (used_.size() < kMostUses) used_.push_back({held->place.segment, {held->place.record, now}});
  }
  return placed({key, kind, *held});
}

std::optional<DiskStore::Placed> DiskStore::placed(const StoreIndex::Named& entry) const {
  Placed placed;
  {
    const MutexLock lock(mutex_);
    const auto found = segments_.find(entry.held.place.segment);
    if (found == segments_.end()) return std::nullopt;
    placed.segment = found->second;
    placed.old = found->second->born() < old_before_;
  }
  placed.key = entry.key;
  placed.kind = entry.kind;
  placed.facts = entry.held.facts;
  placed.length = entry.held.place.extent.length;
  placed.place = entry.held.place;
  return placed;
}

Result<CachedBytes> DiskStore::read(const Placed& placed) {
  Result<CachedBytes> bytes = read_as_it_is(placed);
  if (!bytes && bytes.error().code != Code::kExhausted) forget_wrong(placed);
  return bytes;
}

Result<CachedBytes> DiskStore::read_as_it_is(const Placed& placed) const {
  const StoredExtent& extent = placed.place.extent;
  const auto block =
      std::make_shared<CachedBlock>(extent.length, placed.kind == CachedKind::kPacked ? CachedBlock::kPadding : 0);
  Result<void> whole = placed.segment->read(extent.offset, block->writable());
  if (!whole) return whole.error();
  if (store_checksum(block->view(), options_.seed) == extent.checksum) return CachedBytes(block);
  return Error{Code::kNotFound, "an entry of " + folder_.path() + " is not what was written"};
}

bool DiskStore::forget_wrong(const Placed& placed) {
  const bool was_there = index_.erase_at(placed.key, placed.kind, placed.place);
  if (was_there) doom(placed.place);
  return was_there;
}

void DiskStore::forget(const CacheKey& key, CachedKind kind) {
  if (const std::optional<StoreIndex::Place> place = index_.erase(key, kind)) doom(*place);
}

// It is in the index no more. What has to be done to the files is left to the writer.
void DiskStore::doom(const StoreIndex::Place& place) {
  const MutexLock lock(mutex_);
  const auto found = segments_.find(place.segment);
  if (found == segments_.end()) return;
  found->second->live_bytes -= place.extent.length;
  found->second->live_entries -= 1;
  doomed_.push_back(place);
}

DiskStore::Extent DiskStore::extent() const {
  Extent extent;
  for (std::size_t kind = 0; kind < kCachedKinds; ++kind) {
    extent.kinds[kind] = index_.sum(static_cast<CachedKind>(kind));
    extent.entries += extent.kinds[kind].entries;
  }
  extent.taken = taken();
  return extent;
}

std::uint64_t DiskStore::taken() const {
  const MutexLock lock(mutex_);
  return taken_;
}

void DiskStore::for_each(const std::function<void(const Listed&)>& visit) const {
  for (std::size_t shard = 0; shard < StoreIndex::kShards; ++shard) {
    for (const StoreIndex::Named& entry : index_.shard(shard))
      visit({entry.key, entry.kind, entry.held.facts, entry.held.place.extent.length, entry.held.used});
  }
}

DiskStore::Verified DiskStore::verify(const std::function<bool(std::uint64_t, std::uint64_t)>& progress) {
  Verified verified;
  const std::uint64_t all = extent().entries;
  for (std::size_t shard = 0; shard < StoreIndex::kShards; ++shard) {
    for (const StoreIndex::Named& entry : index_.shard(shard)) {
      const std::optional<Placed> place = placed(entry);
      if (!place) continue;  // dropped meanwhile
      const Result<CachedBytes> bytes = read_as_it_is(*place);
      const bool is_wrong = !bytes && bytes.error().code != Code::kExhausted;
      const bool is_gone = is_wrong && (place->segment->is_removed() || !forget_wrong(*place));
      if (is_gone) continue;  // dropped, forgotten or moved while it was read
      ++verified.entries;
      if (is_wrong) {
        ++verified.wrong;
        ++verified.wrong_kinds[static_cast<std::size_t>(entry.kind)];
      }
      if (progress && !progress(verified.entries, std::max(all, verified.entries))) return verified;
    }
  }
  return verified;
}

std::shared_ptr<StoreSegment> DiskStore::segment(SegmentNumber number) const {
  const MutexLock lock(mutex_);
  const auto found = segments_.find(number);
  return found == segments_.end() ? nullptr : found->second;
}

DiskStore::Segments DiskStore::all_segments() const {
  const MutexLock lock(mutex_);
  return segments_;
}

}  // namespace millrace
