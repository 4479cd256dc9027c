// What other threads work on and will give back: each piece by a number, so that a callback carries that alone and what
// the control thread holds for the piece stays on it; and for how long none has come back. Thread-bound(control).
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "proto/base/result.h"

namespace millrace {

template <class T>
class Outstanding {
 public:
  std::size_t size() const { return pieces_.size() - free_.size(); }

  // Its number, until it is taken.
  std::uint32_t add(T piece) {
    if (size() == 0) moved_ = std::chrono::steady_clock::now();
    if (free_.empty()) {
      pieces_.emplace_back(std::move(piece));
      return static_cast<std::uint32_t>(pieces_.size() - 1);
    }
    const std::uint32_t number = free_.back();
    free_.pop_back();
    pieces_[number] = std::move(piece);
    return number;
  }

  // REQUIRES: the number of one that is not taken; a second time is a bug of ours.
  T take(std::uint32_t number) {
    MILLRACE_CHECK(number < pieces_.size() && pieces_[number].has_value());
    moved_ = std::chrono::steady_clock::now();
    T piece = *std::move(pieces_[number]);
    pieces_[number].reset();
    free_.push_back(number);
    return piece;
  }

  // What is held for it. REQUIRES: as for take().
  T& at(std::uint32_t number) {
    MILLRACE_CHECK(number < pieces_.size() && pieces_[number].has_value());
    return *pieces_[number];
  }

  // How long ago the last one came back, or the first one went out; 0: none is out.
  std::chrono::milliseconds still_for() const {
    if (size() == 0) return std::chrono::milliseconds{0};
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - moved_);
  }

  template <class Step>
  void for_each(Step step) {
    for (std::optional<T>& piece : pieces_) {
      if (piece) step(*piece);
    }
  }
  template <class Step>
  void for_each(Step step) const {
    for (const std::optional<T>& piece : pieces_) {
      if (piece) step(*piece);
    }
  }

  template <class Which>
  std::uint32_t count_if(Which which) const {
    return static_cast<std::uint32_t>(std::count_if(
        pieces_.begin(), pieces_.end(), [&](const std::optional<T>& piece) { return piece && which(*piece); }));
  }

 private:
  std::vector<std::optional<T>> pieces_;
  std::vector<std::uint32_t> free_;  // positions in it
  std::chrono::steady_clock::time_point moved_;
};

}  // namespace millrace
