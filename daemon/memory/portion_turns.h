// Whose portion of memory is filled next: urgent ones before the rest, but every fourth turn the other way round, so
// that neither waits for ever; among these by user, and a user's own in the order in which they came.
//
//   urgent   user 1000: A B      user 1001: C            turns: A C B | D | A C B ...
//   rest     user 1000: D                                        3    : 1
//
// A job that wants another portion comes back with add(). Thread-bound(its owner).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>

namespace millrace {

template <class Job>
class PortionTurns {
 public:
  enum class Urgency : std::uint8_t { kUrgent, kRest };

  void add(Urgency urgency, std::uint32_t user, Job job) {
    (urgency == Urgency::kUrgent ? urgent_ : rest_).jobs[user].push_back(std::move(job));
  }

  // Nullopt: nobody waits.
  std::optional<Job> next() {
    const bool rest_first = ++turn_ % 4 == 0;
    Line& first = rest_first ? rest_ : urgent_;
    Line& second = rest_first ? urgent_ : rest_;
    return first.jobs.empty() ? second.take() : first.take();
  }

 private:
  struct Line {
    std::map<std::uint32_t, std::deque<Job>> jobs;  // by user; no empty ones
    std::uint32_t last_user = 0;                    // whose turn it was

    std::optional<Job> take() {
      auto user = jobs.upper_bound(last_user);
      if (user == jobs.end()) user = jobs.begin();
      if (user == jobs.end()) return std::nullopt;
      last_user = user->first;
      Job job = std::move(user->second.front());
      user->second.pop_front();
      if (user->second.empty()) jobs.erase(user);
      return job;
    }
  };

  Line urgent_;
  Line rest_;
  std::uint64_t turn_ = 0;
};

}  // namespace millrace
