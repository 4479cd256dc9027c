// The orders that the store takes, and what it does to the folder for them: all on the writer's thread.
#include <algorithm>
#include <map>
#include <utility>

#include "daemon/cache/disk/disk_store.h"

namespace millrace {
namespace {

constexpr std::uint64_t kMovedAtOnce = std::uint64_t{64} << 20;
constexpr std::uint64_t kLongestData = std::uint64_t{1} << 32;

std::uint64_t now_in_nanoseconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(now).count());
}

std::uint64_t room_for(std::span<const StoreSegment::Item> items) {
  std::uint64_t room = 2 * kStoreBlock;  // the ends of both files
  for (const auto& item : items) room += StoreSegment::room_for(item.bytes.size()) + kRecordBytes;
  return room;
}

}  // namespace

Result<std::uint64_t> DiskStore::write(std::span<const Entry> entries) {
  MILLRACE_TRY_VOID(folder_.check_there());
  carry_out_forgetting();
  const std::uint64_t now = now_in_nanoseconds();
  std::vector<StoreSegment::Item> items;
  items.reserve(entries.size());
  for (const Entry& entry : entries) {
    if (entry.bytes.empty() || entry.bytes.size() > kLargestStored) continue;
    items.push_back({.record = {.key = entry.key,
                                .kind = entry.kind,
                                .facts = entry.facts,
                                .extent = {},
                                .written = now,
                                .used = static_cast<std::uint32_t>(now / 1'000'000'000)},
                     .bytes = entry.bytes});
  }
  if (items.empty()) return 0;
  const std::uint64_t room = room_for(items);
  if (room > options_.most.count)
    return Error{Code::kExhausted, "what is to be written to " + folder_.path() + " at once is more than it may hold"};
  const std::uint64_t evicted = make_room(room);
  if (taken() + room > options_.most.count)
    return Error{Code::kExhausted, folder_.path() + " holds all that it may, and other daemons are writing to it"};
  MILLRACE_TRY_VOID(append(items, [this](const StoreSegment::Item& item, const StoreIndex::Place& place) {
    const StoreRecord& record = item.record;
    const auto before = index_.put(record.key, record.kind, {record.facts, record.written, record.used, place});
    if (before) doom(*before);
  }));
  return evicted;
}

Result<std::uint64_t> DiskStore::tend() {
  carry_out_forgetting();
  write_down_uses();
  const Result<void> looked = look_around();
  give_room_back();
  add_up_taken();
  const std::uint64_t evicted = make_room(0);
  if (!looked) return looked.error();
  return evicted;
}

void DiskStore::drop_all() {
  std::unordered_set<SegmentNumber> dropped;
  for (const auto& [number, segment] : all_segments()) {
    if (!segment->lock()) continue;
    segment->remove();
    dropped.insert(number);
  }
  let_go(dropped);
  add_up_taken();
}

// Segments that are new, have grown or are gone. The new ones first: what was moved out of one that is gone is in them.
Result<void> DiskStore::look_around() {
  MILLRACE_TRY(const std::vector<std::string> names, folder_.names());
  const Result<void> there = folder_.check_there();
  const Segments known = all_segments();
  std::unordered_set<SegmentId> ids;
  for (const auto& [number, segment] : known) ids.insert(segment->id());
  for (const std::string& name : names) {
    const std::optional<SegmentFileName> file = read_file_name(name);
    if (file && ids.insert(file->segment).second) open_segment(file->segment);
  }
  std::unordered_set<SegmentNumber> gone;
  for (const auto& [number, segment] : known) {
    if (segment->is_removed()) gone.insert(number);
    if (!segment->locked() && !gone.contains(number)) take_in(number, *segment);
  }
  let_go(gone);
  return there;
}

void DiskStore::open_segment(SegmentId id) {
  {
    const MutexLock lock(mutex_);
    if (segments_.size() >= kMostSegments) return;
  }
  Result<std::shared_ptr<StoreSegment>> opened = StoreSegment::open(shared_, id);
  if (!opened) {
    if (opened.error().code == Code::kInvalid || opened.error().code == Code::kNotFound)
      StoreSegment::remove_unsound(folder_, id);
    return;
  }
  const SegmentNumber number = next_number_++;
  {
    const MutexLock lock(mutex_);
    segments_.emplace(number, *opened);
  }
  take_in(number, **opened);
  (*opened)->look_up_taken();
}

// Its records that are new.
void DiskStore::take_in(SegmentNumber number, StoreSegment& segment) {
  const auto take = [&](std::uint32_t record_number, const std::optional<StoreRecord>& record) {
    if (!record || record->dead) return;
    segment.live_bytes += record->extent.length;
    segment.live_entries += 1;
    const auto beaten =
        index_.put_if_newer(record->key, record->kind,
                            {record->facts, record->written, record->used, {number, record_number, record->extent}});
    if (beaten) doom(*beaten);
  };
  // What cannot be read now may be readable the next time.
  static_cast<void>(segment.visit_new(take).has_value());
}

void DiskStore::carry_out_forgetting() {
  std::vector<StoreIndex::Place> doomed;
  {
    const MutexLock lock(mutex_);
    doomed.swap(doomed_);
  }
  std::map<SegmentNumber, std::pair<std::vector<std::uint32_t>, std::vector<StoredExtent>>> by_segment;
  for (const StoreIndex::Place& place : doomed) {
    by_segment[place.segment].first.push_back(place.record);
    by_segment[place.segment].second.push_back(place.extent);
  }
  for (auto& [number, dead] : by_segment) {
    const std::shared_ptr<StoreSegment> from = segment(number);
    if (from == nullptr) continue;
    // Not written: there again at the next start, as a miss if its bytes are gone by then.
    static_cast<void>(from->mark_dead(dead.first).has_value());
    from->punch(dead.second);
    from->look_up_taken();
  }
  if (!by_segment.empty()) add_up_taken();
}

void DiskStore::write_down_uses() {
  std::vector<Used> used;
  {
    const MutexLock lock(mutex_);
    used.swap(used_);
  }
  std::map<SegmentNumber, std::vector<StoreSegment::Use>> by_segment;
  for (const Used& use : used) by_segment[use.segment].push_back(use.use);
  for (const auto& [number, uses] : by_segment) {
    // Not written: it seems to be unused for longer than it is.
    if (const auto to = segment(number)) static_cast<void>(to->mark_used(uses).has_value());
  }
}

// Segments without an entry go, and those that are mostly dead are emptied, a portion at a time.
void DiskStore::give_room_back() {
  const auto is_mostly_dead = [this](const StoreSegment& segment) {
    const std::uint64_t taken = segment.taken(), live = segment.live_bytes;
    return taken > live && taken - live > std::max(taken / 2, segment_size_ / 4);
  };
  for (const auto& [number, segment] : all_segments()) {
    segment->look_up_taken();
    const bool empty = segment->live_entries == 0;
    if (!is_mostly_dead(*segment) && (!empty || current_ == number)) continue;
    if (current_ == number) current_.reset();  // its lock is ours yet
    if (!segment->lock()) continue;
    take_in(number, *segment);  // what came before it was locked
    if (segment->live_entries > 0) move_out(number, *segment);
    if (segment->live_entries > 0) {
      segment->unlock();
      continue;
    }
    segment->remove();
    let_go({number});
  }
}

void DiskStore::move_out(SegmentNumber number, StoreSegment& segment) {
  std::vector<StoreIndex::Named> entries;
  std::uint64_t bytes = 0;
  const auto collect = [&](std::uint32_t record_number, const std::optional<StoreRecord>& record) {
    if (!record || bytes > kMovedAtOnce) return;
    const std::optional<StoreIndex::Held> held = index_.peek(record->key, record->kind);
    if (!held || held->place.segment != number || held->place.record != record_number) return;
    entries.push_back({record->key, record->kind, *held});
    bytes += record->extent.length;
  };
  if (!segment.visit_again(collect)) return;
  std::vector<StoreSegment::Item> items;
  std::vector<StoreIndex::Place> from;
  std::vector<CachedBytes> held;  // that the items borrow
  for (const auto& [key, kind, entry] : entries) {
    const std::optional<Placed> place = placed({key, kind, entry});
    const Result<CachedBytes> read_bytes = place ? read(*place) : Error{Code::kNotFound, ""};
    if (!read_bytes) continue;
    // Later than what it is a copy of, earlier than anything that replaced that meanwhile.
    items.push_back({.record = {.key = key,
                                .kind = kind,
                                .facts = entry.facts,
                                .extent = {},
                                .written = entry.written + 1,
                                .used = entry.used},
                     .bytes = (*read_bytes)->view()});
    from.push_back(entry.place);
    held.push_back(*read_bytes);
  }
  if (items.empty() || taken() + room_for(items) > options_.most.count) return;
  std::size_t moved = 0;
  const Result<void> appended = append(items, [&](const StoreSegment::Item& item, const StoreIndex::Place& place) {
    const StoreRecord& record = item.record;
    const StoreIndex::Place& before = from[moved++];
    if (!index_.erase_at(record.key, record.kind, before)) return doom(place);  // forgotten or replaced meanwhile
    doom(before);
    const auto other = index_.put_if_newer(record.key, record.kind, {record.facts, record.written, record.used, place});
    if (other) doom(*other);
  });
  static_cast<void>(appended.has_value());  // what was not moved stays where it is
  carry_out_forgetting();
}

std::uint64_t DiskStore::let_go(const std::unordered_set<SegmentNumber>& numbers) {
  if (numbers.empty()) return 0;
  if (current_ && numbers.contains(*current_)) current_.reset();
  {
    const MutexLock lock(mutex_);
    for (const SegmentNumber number : numbers) segments_.erase(number);
  }
  return index_.erase_segments(numbers);
}

std::uint64_t DiskStore::make_room(std::uint64_t bytes) {
  std::uint64_t evicted = 0;
  while (taken() + bytes > options_.most.count || all_segments().size() >= kMostSegments) {
    std::vector<std::pair<SegmentNumber, std::shared_ptr<StoreSegment>>> oldest_first;
    for (const auto& entry : all_segments()) oldest_first.push_back(entry);
    std::ranges::sort(oldest_first, {}, [](const auto& entry) { return entry.second->born(); });
    const auto oldest = std::ranges::find_if(oldest_first, [](const auto& entry) { return entry.second->lock(); });
    if (oldest == oldest_first.end()) break;  // others are writing to all of them
    oldest->second->remove();
    evicted += let_go({oldest->first});
    add_up_taken();
  }
  return evicted;
}

// What all segments take together, as each knows it, and which are old.
void DiskStore::add_up_taken() {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> born_and_taken;
  std::uint64_t all = 0;
  for (const auto& [number, segment] : all_segments()) {
    born_and_taken.emplace_back(segment->born(), segment->taken());
    all += segment->taken();
  }
  std::ranges::sort(born_and_taken, std::ranges::greater());
  std::uint64_t old_before = 0, younger = 0;
  for (const auto& [born, taken] : born_and_taken) {
    if (younger + taken > options_.most.count / 2 && younger > 0) {
      old_before = born + 1;
      break;
    }
    younger += taken;
  }
  const MutexLock lock(mutex_);
  taken_ = all;
  old_before_ = old_before;
}

Result<void> DiskStore::append(std::span<StoreSegment::Item> items, const Appended& appended) {
  while (!items.empty()) {
    MILLRACE_TRY(StoreSegment* const segment, current());
    const std::uint32_t first = segment->records();
    std::uint64_t end = segment->data_end();
    std::size_t count = 0;
    while (count < items.size() && (count == 0 || end < segment_size_)) {
      const std::uint64_t room = StoreSegment::room_for(items[count].bytes.size());
      if (count > 0 && end + room >= kLongestData) break;
      end += room;
      ++count;
    }
    const std::span<StoreSegment::Item> some = items.first(count);
    const Result<void> written = segment->append(some);
    segment->look_up_taken();
    add_up_taken();
    MILLRACE_TRY_VOID(written);
    for (std::size_t i = 0; i < count; ++i) {
      const StoredExtent& extent = some[i].record.extent;
      segment->live_bytes += extent.length;
      segment->live_entries += 1;
      appended(some[i], {*current_, first + static_cast<std::uint32_t>(i), extent});
    }
    items = items.subspan(count);
  }
  return {};
}

// A segment to append to: the one at hand, one that nobody else appends to any more, or a new one.
Result<StoreSegment*> DiskStore::current() {
  const Segments segments = all_segments();
  if (current_) {
    StoreSegment& at_hand = *segments.at(*current_);
    if (at_hand.takes_more(segment_size_)) return &at_hand;
    at_hand.unlock();
    current_.reset();
  }
  for (const auto& [number, segment] : segments) {
    if (adopt(number, *segment)) return segment.get();
  }
  if (segments.size() >= kMostSegments)
    return Error{Code::kExhausted, "other daemons have too many segments in " + folder_.path()};
  MILLRACE_TRY(const std::shared_ptr<StoreSegment> made, StoreSegment::create(shared_));
  current_ = next_number_++;
  const MutexLock lock(mutex_);
  segments_.emplace(*current_, made);
  return made.get();
}

bool DiskStore::adopt(SegmentNumber number, StoreSegment& segment) {
  // One that is locked is being emptied.
  if (segment.locked() || !segment.takes_more(segment_size_) || !segment.lock()) return false;
  take_in(number, segment);  // what came before it was locked
  if (segment.takes_more(segment_size_)) {
    current_ = number;
    return true;
  }
  segment.unlock();
  return false;
}

}  // namespace millrace
