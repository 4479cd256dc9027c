// Who has sessions, and what each user's weight is beside the others: what the stages' turns go by.
// Thread-bound(control).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "daemon/model/caller.h"
#include "daemon/model/fair_weights.h"
#include "proto/base/ids.h"

namespace millrace {

class UserShares {
 public:
  explicit UserShares(FairWeights weights = {}) : weights_(std::move(weights)) {}

  // A session of the caller's has come; it counts until left() is called for it.
  void joined(std::shared_ptr<const Caller> caller) {
    User& user = users_[caller->user()];
    user.sessions.push_back(std::move(caller));
    weigh(user);
  }
  // false: that was his last one. REQUIRES: it had joined.
  bool left(const std::shared_ptr<const Caller>& caller) {
    const auto found = users_.find(caller->user());
    User& user = found->second;
    user.sessions.erase(std::find(user.sessions.begin(), user.sessions.end(), caller));
    if (!user.sessions.empty()) return weigh(user), true;
    all_weights_ -= user.weight;
    users_.erase(found);
    return false;
  }

  // From here on. What was charged before stays as it was.
  void set_weights(FairWeights weights) {
    weights_ = std::move(weights);
    for (auto& [id, user] : users_) weigh(user);
  }

  // The highest of his sessions', whose processes may be of unlike groups; 1 of a user who has none.
  std::uint32_t weight_of(UserId id) const {
    const auto found = users_.find(id);
    return found == users_.end() ? 1 : found->second.weight;
  }
  // His weight by all users' that have sessions. REQUIRES: is_here().
  double part_of(UserId id) const { return static_cast<double>(weight_of(id)) / static_cast<double>(all_weights_); }
  bool is_here(UserId id) const { return users_.contains(id); }
  // Whether somebody else has a session, and so may want something at any moment.
  bool has_others(UserId id) const { return users_.size() > (is_here(id) ? 1U : 0U); }

 private:
  struct User {
    std::vector<std::shared_ptr<const Caller>> sessions;  // shared with them: weights may change while they are open
    std::uint32_t weight = 0;                             // before the first
  };

  void weigh(User& user) {
    all_weights_ -= user.weight;
    user.weight = 1;
    for (const auto& caller : user.sessions) user.weight = std::max(user.weight, weights_.of(*caller));
    all_weights_ += user.weight;
  }

  FairWeights weights_;
  std::unordered_map<UserId, User> users_;
  std::uint64_t all_weights_ = 0;
};

}  // namespace millrace
