// How many bytes of a kind may be held at a time, and the shares of those who hold them. A Charge is given back when it
// goes, on whatever path and thread that is. Thread-safe; who charges is one thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "daemon/observe/counters.h"
#include "proto/base/bytes.h"

namespace millrace {

class ByteBudget {
 public:
  class Charge;

  // `gauge` shows what is held. `counters` outlives it.
  ByteBudget(Bytes limit, MetricId gauge, Counters& counters) : limit_(limit), gauge_(gauge), counters_(counters) {}
  ByteBudget(const ByteBudget&) = delete;
  ByteBudget& operator=(const ByteBudget&) = delete;

  Bytes limit() const { return limit_; }
  Bytes held() const { return {held_.load(std::memory_order_relaxed)}; }
  bool full() const { return held() >= limit_; }
  bool has_room_for(Bytes more) const { return held() + more <= limit_; }

  // Always, over the limit as well: who may not go over it asks has_room_for() first. The budget outlives the charge.
  Charge charge(Bytes bytes);

 private:
  void add(Bytes bytes) {
    held_.fetch_add(bytes.count, std::memory_order_relaxed);
    counters_.add(gauge_, bytes.count);
  }
  void subtract(Bytes bytes) {
    held_.fetch_sub(bytes.count, std::memory_order_relaxed);
    counters_.subtract(gauge_, bytes.count);
  }

  const Bytes limit_;
  const MetricId gauge_;
  Counters& counters_;
  // Writers: whoever gets and gives back charges; publishes nothing but itself.
  std::atomic<std::uint64_t> held_{0};
};

class ByteBudget::Charge {
 public:
  Charge() = default;  // of nothing
  ~Charge() { give_back(); }
  Charge(Charge&& other) noexcept
      : budget_(std::exchange(other.budget_, nullptr)), bytes_(std::exchange(other.bytes_, Bytes{})) {}
  Charge& operator=(Charge&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  Bytes bytes() const { return bytes_; }
  void give_back() {
    if (budget_ != nullptr) std::exchange(budget_, nullptr)->subtract(std::exchange(bytes_, Bytes{}));
  }

 private:
  friend class ByteBudget;
  Charge(ByteBudget& budget, Bytes bytes) : budget_(&budget), bytes_(bytes) { budget.add(bytes); }

  ByteBudget* budget_ = nullptr;
  Bytes bytes_;
};

inline ByteBudget::Charge ByteBudget::charge(Bytes bytes) {
  return Charge(*this, bytes);
}

}  // namespace millrace
