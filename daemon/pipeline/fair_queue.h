// Work waiting for a stage, in the order in which it should go on: the highest priority first, within it the sessions
// in turns, within a session first in, first out. So one session with ten thousand samples delays another's next one by
// one item. Thread-bound(control).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <deque>
#include <functional>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "proto/base/batch_choices.h"
#include "proto/base/ids.h"

namespace millrace {

template <class T>
class FairQueue {
 public:
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }

  void push(SessionId session, Priority priority, T item) {
    turn_of(session, priority).items.push_back(std::move(item));
    ++size_;
  }

  // The item goes first among its session's: what take() gave and is not used up.
  void put_back(SessionId session, Priority priority, T item) {
    turn_of(session, priority).items.push_front(std::move(item));
    ++size_;
  }

  // Takes out all for which unwanted(item), in no particular order.
  template <class Unwanted>
  std::vector<T> remove(Unwanted unwanted) {
    std::vector<T> removed;
    for (auto& turns : turns_) {
      for (Turn& turn : turns) {
        const auto first = std::stable_partition(turn.items.begin(), turn.items.end(), std::not_fn(unwanted));
        std::move(first, turn.items.end(), std::back_inserter(removed));
        turn.items.erase(first, turn.items.end());
      }
      std::erase_if(turns, [](const Turn& turn) { return turn.items.empty(); });
    }
    size_ -= removed.size();
    return removed;
  }

  std::optional<T> take() {
    for (std::size_t p = kPriorities; p-- > 0;) {
      auto& turns = turns_[p];
      if (turns.empty()) continue;
      Turn turn = std::move(turns.front());
      turns.pop_front();
      T item = std::move(turn.items.front());
      turn.items.pop_front();
      if (!turn.items.empty()) turns.push_back(std::move(turn));
      --size_;
      return item;
    }
    return std::nullopt;
  }

 private:
  struct Turn {
    SessionId session;
    std::deque<T> items;  // never empty
  };

  Turn& turn_of(SessionId session, Priority priority) {
    auto& turns = turns_[static_cast<std::size_t>(priority)];
    for (Turn& turn : turns) {
      if (turn.session == session) return turn;
    }
    return turns.emplace_back(Turn{session, {}});
  }

  std::array<std::deque<Turn>, kPriorities> turns_;
  std::size_t size_ = 0;
};

}  // namespace millrace
