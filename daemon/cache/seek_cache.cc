#include "daemon/cache/seek_cache.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <utility>

#include "daemon/cache/fit_for_database.h"
#include "daemon/cache/seed_file.h"
#include "daemon/observe/log.h"
#include "proto/base/unique_fd.h"

namespace millrace {
namespace {

constexpr std::size_t kMostPending = 16'384;  // more are dropped: they are made again
constexpr std::size_t kMostInOneGo = 1'024;
constexpr std::chrono::milliseconds kPause{500};  // between transactions, each of which waits for the disk

std::string database_path(const std::string& state_dir) {
  return state_dir + "/seek-index.mdb";
}

// Why indexes are not to be kept on disk; empty: they are.
std::string hindrance_of(const SeekCache::Options& options) {
  if (options.memory.count == 0) return "cache.index_memory is 0";
  if (options.disk.count == 0) return "cache.index_disk is 0";
  if (options.state_dir.empty()) return "there is no daemon.state_dir";
  return unfit_for_database(options.state_dir);
}

// As long as this lives no other process of ours checks, sets aside or opens a database of the folder.
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder) : folder_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    while (folder_ && ::flock(folder_.get(), LOCK_EX) != 0 && errno == EINTR) continue;
  }

 private:
  const UniqueFd folder_;
};

}  // namespace

SeekCache::SeekCache(Options options, Counters& counters)
    : options_(std::move(options)),
      counters_(counters),
      seed_(seed_of(options_.state_dir)),
      hindrance_(hindrance_of(options_)),
      memory_(options_.memory),
      wants_disk_(hindrance_.empty()) {
  if (!wants_disk_) return;
  writer_ = std::thread([this] { run_writer(); });
  pthread_setname_np(writer_.native_handle(), "mr-index");
}

SeekCache::~SeekCache() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
  }
  if (writer_.joinable()) writer_.join();
}

void SeekCache::wait_for_disk(std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  const MutexLock lock(mutex_);
  while (wants_disk_ && disk_ == nullptr && wake_.wait_until(mutex_, deadline)) {
  }
}

std::string SeekCache::whereabouts() const {
  return hindrance_.empty() ? "in memory and in " + database_path(options_.state_dir) : "in memory only: " + hindrance_;
}

SharedIndex SeekCache::find(const IndexKey& key) {
  if (SharedIndex index = memory_.find(key)) return index;
  const std::shared_ptr<DiskTier> disk_tier = disk();
  if (disk_tier == nullptr) return nullptr;
  std::optional<DiskTier::Found> found = disk_tier->find(key);
  if (!found) return nullptr;
  count(memory_.put(key, found->index));
  if (found->old) enqueue({key, found->index});
  return found->index;
}

void SeekCache::store(const IndexKey& key, std::vector<std::uint8_t> index) {
  const auto shared = std::make_shared<const std::vector<std::uint8_t>>(std::move(index));
  count(memory_.put(key, shared));
  enqueue({key, shared});
}

void SeekCache::forget(const IndexKey& key) {
  count(memory_.forget(key));
  enqueue({key, nullptr});
}

void SeekCache::count(const MemoryTier::Change& change) {
  counters_.add(MetricId::index_entries, static_cast<std::uint64_t>(change.entries));
  counters_.add(MetricId::index_bytes, static_cast<std::uint64_t>(change.bytes));
  counters_.add(MetricId::index_evictions, static_cast<std::uint64_t>(change.evicted));
}

void SeekCache::count(const DiskTier::Extent& extent) {
  counters_.add(MetricId::index_disk_entries, extent.entries - counted_.entries);
  counters_.add(MetricId::index_disk_bytes, extent.bytes - counted_.bytes);
  counted_ = extent;
}

std::shared_ptr<DiskTier> SeekCache::disk() const {
  const MutexLock lock(mutex_);
  return disk_;
}

void SeekCache::enqueue(DiskTier::Change change) {
  const MutexLock lock(mutex_);
  if (!wants_disk_ || pending_.size() >= kMostPending) return;
  pending_.push_back(std::move(change));
  counters_.add(MetricId::index_disk_pending);
  if (pending_.size() == kMostInOneGo) wake_.notify_all();
}

void SeekCache::drop_pending() {
  counters_.subtract(MetricId::index_disk_pending, pending_.size());
  pending_.clear();
}

// Gathers changes for a while, then writes them in one transaction.
void SeekCache::run_writer() {
  open_disk();
  while (true) {
    std::vector<DiskTier::Change> changes;
    {
      const MutexLock lock(mutex_);
      if (!wants_disk_) return;
      const auto deadline = std::chrono::steady_clock::now() + kPause;
      while (!stopping_ && pending_.size() < kMostInOneGo && wake_.wait_until(mutex_, deadline)) {
      }
      if (stopping_ && pending_.empty()) return;
      const auto count = static_cast<std::ptrdiff_t>(std::min(pending_.size(), kMostInOneGo));
      changes.assign(std::make_move_iterator(pending_.begin()), std::make_move_iterator(pending_.begin() + count));
      pending_.erase(pending_.begin(), pending_.begin() + count);
    }
    if (changes.empty()) continue;
    write(changes);
    counters_.subtract(MetricId::index_disk_pending, changes.size());
  }
}

void SeekCache::open_disk() {
  const std::string path = database_path(options_.state_dir);
  const FolderLock folder(options_.state_dir);
  Result<std::unique_ptr<DiskTier>> opened = Error{Code::kInvalid, "damaged"};
  if (!options_.check || options_.check(path)) opened = DiskTier::open(path, options_.disk);
  if (!opened && opened.error().code == Code::kInvalid) {
    log_warning(path + " is set aside as " + path + ".damaged, and begun anew: " + opened.error().message);
    std::rename(path.c_str(), (path + ".damaged").c_str());
    std::remove((path + "-lock").c_str());
    opened = DiskTier::open(path, options_.disk);
  }
  if (opened) count((*opened)->extent());
  const MutexLock lock(mutex_);
  wake_.notify_all();
  if (opened) {
    disk_ = *std::move(opened);
    return;
  }
  log_warning("seek indexes are kept in memory only: " + opened.error().message);
  wants_disk_ = false;
  drop_pending();
}

void SeekCache::write(const std::vector<DiskTier::Change>& changes) {
  const std::shared_ptr<DiskTier> disk_tier = disk();
  const Result<std::uint64_t> evicted = disk_tier->write(changes);
  if (evicted) {
    counters_.add(MetricId::index_disk_evictions, *evicted);
    return count(disk_tier->extent());
  }
  log_warning("seek indexes are kept in memory only from now on: " + evicted.error().message);
  const MutexLock lock(mutex_);
  wants_disk_ = false;
  drop_pending();
  disk_ = nullptr;
}

}  // namespace millrace
