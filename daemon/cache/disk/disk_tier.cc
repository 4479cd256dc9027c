#include "daemon/cache/disk/disk_tier.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <utility>

#include "daemon/cache/disk/fit_for_store.h"
#include "daemon/observe/log.h"

namespace millrace {
namespace {

constexpr std::size_t kMostPending = 16'384;  // what is more is not written this time
constexpr std::uint64_t kMostBytesPending = (64_MiB).count;
constexpr std::size_t kManyPending = 1'024;  // are written at once, as are so many bytes
constexpr std::uint64_t kManyBytesPending = (16_MiB).count;
constexpr std::chrono::milliseconds kPause{500};  // between portions that are written
constexpr std::chrono::seconds kTendEvery{5}, kRest{60};
constexpr std::chrono::seconds kOpenWithin{30};  // a store that somebody wants verified

std::string store_path(const std::string& state_dir) {
  return state_dir + "/cache";
}

std::string hindrance_of(const DiskTier::Options& options, const StateSeed& seed) {
  if (!options.hindrance.empty()) return options.hindrance;
  if (options.state_dir.empty()) return "there is no daemon.state_dir";
  if (std::string unfit = unfit_for_store(options.state_dir); !unfit.empty()) return unfit;  // then "auto" is 0, too
  if (options.most.count == 0) return "cache.disk is 0";
  // With a secret that the next start does not know, nothing written would be worth anything.
  return seed.kept ? "" : "the secret in " + seed_path(options.state_dir) + " can neither be read nor written";
}

// The database that versions before this one had.
void remove_database(const std::string& state_dir) {
  const std::string path = state_dir + "/seek-index.mdb";
  if (std::remove(path.c_str()) == 0)
    log_info(path + ", an older version's database of seek indexes, is removed: they are made again, in " +
             store_path(state_dir));
  for (const char* const suffix : {"-lock", ".damaged"}) std::remove((path + suffix).c_str());
}

}  // namespace

DiskTier::DiskTier(Options options, const StateSeed& seed, CacheCounts& counts)
    : options_(std::move(options)),
      seed_(seed.value),
      hindrance_(hindrance_of(options_, seed)),
      counts_(counts),
      wants_store_(hindrance_.empty()) {
  if (!hindrance_.empty()) {
    // Nothing hinders it but its place: it was wanted.
    const bool wanted = options_.hindrance.empty() && !options_.state_dir.empty() && options_.most.count != 0;
    counts_.counters().set(MetricId::store_unusable, wanted ? 1 : 0);
    return;
  }
  writer_ = std::thread([this] { run_writer(); });
  pthread_setname_np(writer_.native_handle(), "mr-index");
}

DiskTier::~DiskTier() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
  }
  if (writer_.joinable()) writer_.join();
}

void DiskTier::wait(std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  const MutexLock lock(mutex_);
  while (wants_store_ && store_ == nullptr && wake_.wait_until(mutex_, deadline)) {
  }
}

std::string DiskTier::folder() const {
  return store_path(options_.state_dir);
}

std::shared_ptr<DiskStore> DiskTier::store() const {
  if (!hindrance_.empty()) return nullptr;
  const MutexLock lock(mutex_);
  return store_;
}

std::optional<CachedEntry> DiskTier::find(const CacheKey& key, CachedKind kind) {
  const std::shared_ptr<DiskStore> store = this->store();
  if (store == nullptr) return std::nullopt;
  const std::optional<DiskStore::Placed> placed = store->find(key, kind);
  if (!placed) return std::nullopt;
  Result<CachedBytes> read = store->read(*placed);
  if (!read) return std::nullopt;
  counts_.from_disk(kind);
  if (kind == CachedKind::kIndex) {
    if (placed->old) enqueue({key, kind, *read, placed->facts});  // so that what is used stays
    return CachedEntry{.bytes = *std::move(read)};
  }
  return CachedEntry{
      .bytes = *std::move(read), .info = placed->facts.info, .contents = placed->facts.contents, .stable = true};
}

bool DiskTier::write(const CacheKey& key, CachedKind kind, CachedBytes bytes, const StoredFacts& facts) {
  return enqueue({key, kind, std::move(bytes), facts});
}

// One that waits to be written goes, too, when the order comes up.
void DiskTier::forget(const CacheKey& key, CachedKind kind) {
  if (const std::shared_ptr<DiskStore> store = this->store()) store->forget(key, kind);
  enqueue({.key = key, .kind = kind, .bytes = nullptr, .facts = {}});
}

Error DiskTier::nothing_on_disk() const {
  return Error{Code::kPrecondition,
               "nothing is kept on disk: " +
                   (hindrance_.empty() ? folder() + " could not be opened; see the daemon's log" : hindrance_)};
}

Result<DiskTier::Dropped> DiskTier::drop_all() {
  const MutexLock lock(mutex_);
  const std::uint64_t mine = ++drops_wanted_;
  wake_.notify_all();
  while (wants_store_ && drops_done_ < mine) wake_.wait(mutex_);
  if (!wants_store_) return nothing_on_disk();
  return dropped_;
}

Result<CacheVerified> DiskTier::verify(const CacheOrders::Progress& progress) {
  wait(kOpenWithin);
  const std::shared_ptr<DiskStore> store = this->store();
  if (store == nullptr) return nothing_on_disk();
  const DiskStore::Verified verified = store->verify(progress);
  for (std::size_t kind = 0; kind < kCachedKinds; ++kind)
    counts_.rejected(static_cast<CachedKind>(kind), verified.wrong_kinds[kind]);
  return CacheVerified{.entries = verified.entries, .wrong = verified.wrong};
}

bool DiskTier::enqueue(Change change) {
  const std::uint64_t bytes = change.bytes == nullptr ? 0 : change.bytes->size();
  const CachedKind kind = change.kind;
  const MutexLock lock(mutex_);
  if (!wants_store_ || pending_.size() >= kMostPending || pending_bytes_ + bytes > kMostBytesPending) return false;
  if (std::chrono::steady_clock::now() < rests_until_) return false;
  pending_.push_back(std::move(change));
  pending_bytes_ += bytes;
  counts_.pending(kind, 1);
  const bool many = pending_bytes_ >= kManyBytesPending && pending_bytes_ - bytes < kManyBytesPending;
  if (many || pending_.size() == kManyPending) wake_.notify_all();
  return true;
}

void DiskTier::drop_pending() {
  for (const Change& change : pending_) counts_.pending(change.kind, -1);
  pending_.clear();
  pending_bytes_ = 0;
}

void DiskTier::run_writer() {
  open_store();
  const std::shared_ptr<DiskStore> store = this->store();
  if (store == nullptr) return;
  std::vector<Change> changes;
  while (gather(changes)) {
    drop_if_wanted(*store, changes);
    if (!changes.empty()) write(*store, changes);
    for (const Change& change : changes) counts_.pending(change.kind, -1);
    changes.clear();  // its bytes, too
    if (std::chrono::steady_clock::now() - tended_ >= kTendEvery) tend(*store);
  }
  tend(*store);
}

bool DiskTier::has_many() const {
  return pending_.size() >= kManyPending || pending_bytes_ >= kManyBytesPending;
}

// What came within a while. false: it is the end, and nothing is left.
bool DiskTier::gather(std::vector<Change>& changes) {
  const MutexLock lock(mutex_);
  const auto deadline = std::chrono::steady_clock::now() + kPause;
  while (!stopping_ && !has_many() && drops_done_ == drops_wanted_ && wake_.wait_until(mutex_, deadline)) {
  }
  changes.assign(std::make_move_iterator(pending_.begin()), std::make_move_iterator(pending_.end()));
  pending_.clear();
  pending_bytes_ = 0;
  return !stopping_ || !changes.empty() || drops_done_ != drops_wanted_;
}

// Together with what was made before.
void DiskTier::drop_if_wanted(DiskStore& store, std::vector<Change>& changes) {
  std::uint64_t wanted = 0;
  {
    const MutexLock lock(mutex_);
    if (drops_done_ == drops_wanted_) return;
    wanted = drops_wanted_;
    drop_pending();
  }
  for (const Change& change : changes) counts_.pending(change.kind, -1);
  changes.clear();
  const DiskStore::Extent before = store.extent();
  store.drop_all();
  count(store, 0);
  const MutexLock lock(mutex_);
  dropped_ = {.gone = {.entries = before.entries - std::min(before.entries, counted_.entries),
                       .bytes = before.taken - std::min(before.taken, counted_.taken)},
              .left = counted_.entries};
  drops_done_ = wanted;
  wake_.notify_all();
}

void DiskTier::open_store() {
  remove_database(options_.state_dir);
  Result<std::unique_ptr<DiskStore>> opened =
      DiskStore::open({.folder = folder(), .most = options_.most, .seed = seed_, .read_at = ::pread});
  if (opened) count(**opened, 0);
  tended_ = std::chrono::steady_clock::now();
  const MutexLock lock(mutex_);
  wake_.notify_all();
  if (opened) {
    store_ = *std::move(opened);
    return;
  }
  log_warning("what is kept of images is in memory only: " + opened.error().message);
  counts_.counters().set(MetricId::store_unusable, 1);
  wants_store_ = false;
  drop_pending();
}

void DiskTier::count(const DiskStore& store, std::uint64_t evicted) {
  const DiskStore::Extent extent = store.extent();
  for (std::size_t kind = 0; kind < kCachedKinds; ++kind) {
    const StoreIndex::Sum &now = extent.kinds[kind], &before = counted_.kinds[kind];
    counts_.on_disk(static_cast<CachedKind>(kind), now.entries - before.entries, now.bytes - before.bytes);
  }
  counts_.dropped_from_disk(evicted);
  counted_ = extent;
  note_room(extent.taken, evicted);
}

// Nothing more is packed for the disk alone when an eighth is left, for what waits to be written takes its room too, nor
// after something had to go until half of it is free: else of a dataset larger than the disk each image would be packed,
// written, and dropped before its next turn.
void DiskTier::note_room(std::uint64_t taken, std::uint64_t evicted) {
  const std::uint64_t bound = options_.most.count - options_.most.count / 8;
  if (evicted > 0) was_full_ = true;
  if (taken < options_.most.count / 2) was_full_ = false;
  room_.store(was_full_ || taken >= bound ? 0 : bound - taken, std::memory_order_relaxed);
}

void DiskTier::tend(DiskStore& store) {
  const Result<std::uint64_t> evicted = store.tend();
  tended_ = std::chrono::steady_clock::now();
  count(store, evicted ? *evicted : 0);
  if (!evicted) rest(evicted.error());
}

void DiskTier::write(DiskStore& store, std::span<const Change> changes) {
  std::vector<DiskStore::Entry> entries;
  std::uint64_t bytes = 0;
  const auto write_entries = [&] {
    const Result<std::uint64_t> evicted = store.write(entries);
    count(store, evicted ? *evicted : 0);
    if (!evicted) rest(evicted.error());
    if (evicted && !entries.empty() && std::exchange(failing_, false))
      counts_.counters().set(MetricId::store_unusable, 0);
    entries.clear();
    bytes = 0;
  };
  for (const Change& change : changes) {
    if (change.bytes == nullptr) {
      write_entries();  // in the order in which they came
      store.forget(change.key, change.kind);
    } else {
      // What is written at once has to find room at once.
      if (bytes + change.bytes->size() > options_.most.count / 4) write_entries();
      bytes += change.bytes->size();
      entries.push_back({change.key, change.kind, change.facts, change.bytes->view()});
    }
  }
  write_entries();
}

// What is made meanwhile is not written.
void DiskTier::rest(const Error& why) {
  if (!std::exchange(failing_, true))
    log_warning("what is kept of images is not written to disk for now: " + why.message);
  counts_.counters().set(MetricId::store_unusable, 1);
  room_.store(0, std::memory_order_relaxed);
  const MutexLock lock(mutex_);
  rests_until_ = std::chrono::steady_clock::now() + kRest;
  drop_pending();
}

}  // namespace millrace
