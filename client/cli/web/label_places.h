// Which sessions, jobs and users have labels of their own in figures, and which are "other". It remembers: readers take a
// counter that falls for one that began anew, so nobody leaves "other" while he is there. Thread-bound(its owner).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "millrace/v1/statistics.pb.h"

namespace millrace::cli {

// The places for one kind of key: the first keys have one, and keep it.
template <class Key>
class Places {
 public:
  static constexpr std::size_t kMost = 63;  // beside "other"

  struct Seen {
    Key key;
    bool gives_way = false;  // to one that comes while all places are taken
    bool is_rest = false;    // the daemon's own "other": has no place where some have none
  };

  // All that there are now.
  void look(const std::vector<Seen>& all) {
    std::set<Key> now;
    for (const Seen& one : all) now.insert(one.key);
    std::erase_if(others_, [&](const Key& key) { return !now.contains(key); });
    std::erase_if(named_, [&](const Key& key) { return !now.contains(key); });
    for (const Seen& one : all) {
      if (named_.contains(one.key) || others_.contains(one.key)) continue;
      const bool has =
          (!one.is_rest || others_.empty()) && (named_.size() < kMost || (!one.is_rest && makes_room(all)));
      (has ? named_ : others_).insert(one.key);
    }
  }
  bool has(const Key& key) const { return named_.contains(key); }

 private:
  bool makes_room(const std::vector<Seen>& all) {
    const Seen* goes = nullptr;
    for (const Seen& one : all) {
      const bool may = (one.gives_way || one.is_rest) && named_.contains(one.key);
      if (may && (goes == nullptr || (one.is_rest && !goes->is_rest))) goes = &one;
    }
    if (goes == nullptr) return false;
    named_.erase(goes->key);
    others_.insert(goes->key);
    return true;
  }

  std::set<Key> named_, others_;
};

class LabelPlaces {
 public:
  // What the daemon says newly. One that was started anew has all places anew.
  void look(const v1::GetStatisticsReply& statistics_untrusted);

  bool has(const v1::SessionStatistics& session) const { return sessions_.has(session.session_id()); }
  bool has(const v1::JobStatistics& job) const { return jobs_.has({job.name(), job.uid()}); }
  bool has(const v1::UserStatistics& user) const { return users_.has(user.uid()); }
  // Counters of sessions that have ended as "other", which go on to have them. Its number is 0, which no session has.
  const v1::SessionStatistics& ended() const { return ended_; }
  bool has_ended() const { return has_ended_; }

 private:
  void look_at_sessions(const v1::GetStatisticsReply& statistics);

  std::int32_t pid_ = 0;
  double uptime_ = 0;
  Places<std::uint64_t> sessions_;
  Places<std::pair<std::string, std::uint32_t>> jobs_;
  Places<std::uint32_t> users_;
  std::map<std::uint64_t, v1::SessionStatistics> others_;  // as they were last
  v1::SessionStatistics ended_;
  bool has_ended_ = false;
};

}  // namespace millrace::cli
