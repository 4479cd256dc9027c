// Who is let into one tier of the cache, and who goes for it: what saves the most seconds a byte and second of its stay,
// by reuse that is known (reuse_forecast.h) or, where nobody knows it, was observed. It holds no bytes and does nothing but
// decide; the tier keeps the entries and does as it is told.
//
//   asked()         once for each file that is asked for, whatever is kept of it
//   hit:  accessed() the entry is of that sample now
//   miss: worth_making()?  ─no─▶ decode only        Asked before something is made, so that what would go soon is not.
//           └─yes─▶ make it ─▶ admit() ─▶ a ticket, and the tickets of those who go; or nullopt: throw it away
//   removed()       the entry is gone for a reason of its own (wrong, replaced, its file is on no disk any more)
//
// What an entry is worth, in seconds a byte and second:      saves / (bytes * wait)
// `wait` is the time to the next access for what costs nothing to make, so that who is wanted last goes first (Belady). What
// costs more than two hits to make is worth the same whenever it is wanted next, so `wait` is then the mean time between
// accesses: of one dataset nobody goes for another, and a part of a dataset larger than the tier stays for good (as MinIO in
// Mohan et al., "Analyzing and Mitigating Data Stalls in DNN Training", VLDB 2021). In between it is in between. A
// newcomer has its making to pay for, out of the accesses that can be hoped for, and must be worth a tenth more than those
// who go, so that nothing swings. Datasets that nobody uses are worth nothing, and the longest unused goes first; but
// nothing goes before its room is wanted.
//
// Costs: asked() and accessed() some tens of nanoseconds, without allocation. worth_making() and admit() look at no more
// than kLooks entries, drawn by chance, of each dataset in use and kind; of the drawn ones the worst goes. That takes some
// microseconds a dataset; of many refusals of what takes long to make most take none. Memory: 32 bytes an
// entry, and Options::observed bytes.
//
// Two tiers are two policies. For memory an entry that is on disk as well saves what reading it takes, and costs nothing to
// make but the read; who is dropped from memory stays on disk by the disk's own policy.
//
// Thread-bound(its owner): all calls of one object under one lock, in shards that of the shard, each with its share of
// the budget. `now` is seconds of the clock that the ReuseForecast's sessions are told in, and never goes back. A ReuseForecast is
// UseTable's, asked for anew for each call or each few; it may be older than the last call's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "daemon/cache/policy/access_sketch.h"
#include "daemon/cache/policy/reuse_forecast.h"
#include "daemon/model/bytes/cached_bytes.h"
#include "daemon/model/files/dataset_use.h"
#include "proto/base/bytes.h"

namespace millrace {

class Policy {
 public:
  // Of an entry, while it is in: counted from 0, free ones are handed out again first, so that a tier can keep its entries
  // in a vector by them.
  using Ticket = std::uint32_t;

  struct Options {
    Bytes budget;
    std::size_t observed = 1 << 16;  // counters for files of no dataset in use; some 10 for each one that is kept
    std::uint64_t seed = 1;          // of the draws
  };

  // What could be kept, or is. Of a file that belongs to no dataset `member.sample` is any 32 bits of its key.
  struct Piece {
    DatasetMember member;
    CachedKind kind = CachedKind::kIndex;
    std::uint32_t bytes = 0;  // with what keeping them costs; before it is made: about as many
    float saves = 0;          // seconds that a hit saves
    float costs = 0;          // seconds that making it takes, beyond what is done anyway
  };

  explicit Policy(const Options& options);

  void asked(const DatasetMember& member, const ReuseForecast& forecast, double now);
  void accessed(Ticket entry, const DatasetMember& member);

  bool worth_making(const Piece& piece, const ReuseForecast& forecast, double now);
  // Those who go for it are added to `gone`; their tickets are free, and the newcomer may have one of them.
  std::optional<Ticket> admit(const Piece& piece, const ReuseForecast& forecast, double now, std::vector<Ticket>& gone);
  // What a start finds on disk: let in while there is room, and nobody goes for it. `last_used`: seconds as `now`, less than
  // 0 for what was used before the start.
  std::optional<Ticket> found(const Piece& piece, double last_used);
  void removed(Ticket entry);

  Bytes budget() const { return Bytes{budget_}; }
  Bytes used() const { return Bytes{used_}; }
  std::size_t entries() const { return entries_.size() - free_.size(); }
  std::size_t datasets() const { return numbers_.size(); }  // that are told apart, and have entries

 private:
  static constexpr std::size_t kLooks = 24;
  static constexpr std::size_t kMostGroups = 1024;  // datasets told apart; what is kept of further ones goes early
  using GroupNumber = std::uint16_t;

  struct Entry {
    std::uint32_t sample = 0;
    std::uint32_t bytes = 0;
    std::uint32_t place = 0;  // in its group's list
    float saves = 0;
    float costs = 0;
    std::uint16_t listing = 0;
    GroupNumber group = 0;
    CachedKind kind = CachedKind::kIndex;
    bool in = false;
    bool going = false;
  };
  // One dataset's entries.
  struct Group {
    DatasetNumber dataset = DatasetNumber::kNone;
    double last_used = 0;
    std::array<std::vector<Ticket>, kCachedKinds> lists;
    bool empty() const;
  };
  struct Victim {
    Ticket entry;
    double worth;
  };
  // Who would have gone for the last that was refused. What takes long to make and is worth less still is refused without a look, a few times.
  struct Bar {
    double worth = 0;
    double since = 0;
    unsigned refusals = 0;  // left
  };
  class Appraisal;

  GroupNumber group_of(DatasetNumber dataset);
  GroupNumber group_found(DatasetNumber dataset) const;
  std::uint64_t thing_of(const DatasetMember& member) const;
  void drop_empty_group(GroupNumber number);
  Ticket add(const Piece& piece, GroupNumber group);
  void attach(Ticket ticket, GroupNumber group);
  void detach(Ticket ticket);
  std::optional<Victim> worst(const ReuseForecast& forecast, double now);
  void look(const Group& group, CachedKind kind, const Appraisal& appraisal, std::optional<Victim>& worst);
  std::optional<Ticket> idle_entry(const Group& group) const;
  bool make_room(const Piece& piece, double worth, const ReuseForecast& forecast, double now,
                 std::vector<Ticket>& going);
  bool is_below_bar(double worth, double now);
  std::uint32_t draw(std::size_t below);

  const std::uint64_t budget_;
  std::uint64_t used_ = 0;
  std::uint64_t random_;
  AccessSketch sketch_;
  std::vector<Entry> entries_;  // by ticket
  std::vector<Ticket> free_;
  std::vector<Group> groups_;  // the first one: files of no dataset
  std::vector<GroupNumber> free_groups_;
  std::unordered_map<DatasetNumber, GroupNumber> numbers_;
  std::vector<Ticket> going_;  // of the call that is under way
  Bar bar_;
};

}  // namespace millrace
