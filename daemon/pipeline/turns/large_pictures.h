// Memory for decoding (Resource::kDecoding), which all lanes share. A picture that takes more than a lane keeps anyway is
// charged here to its session, on the control thread and before a lane gets it, so no lane ever waits for memory: what
// finds no room is deferred, and is given back in turns (priorities, users and sessions by cost, first in first out).
// The one whose turn it is keeps it, however long it takes, and nothing else is charged meanwhile, so none starves.
// Thread-bound(control).
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "daemon/admit/ledger.h"
#include "daemon/backend/backend.h"
#include "daemon/pipeline/batch/batch.h"
#include "daemon/pipeline/turns/fair_queue.h"

namespace millrace {

class LargePictures {
 public:
  // A large picture for which there was no room.
  struct Deferred {
    InFlight batch;
    std::size_t backend;
    SampleTask task;
    Bytes beside;  // as for cover()
  };

  // `ledger`: of the sessions' accounts, to which pictures are charged. Both outlive it.
  LargePictures(const Ledger& ledger, const UserShares& shares) : ledger_(ledger), waiting_(shares) {}

  // kExhausted: it surely takes more than the whole budget.
  Result<void> check(const SampleTask& task) const;

  // Makes `charge`, which is to `account` or empty, large enough for `task` as well: a lane decodes one picture after the
  // other, so of those in a job the largest counts. false: there is no room, or others wait for some already; then
  // nothing is charged. `beside`: what the backend takes for it beside decoding_memory().
  [[nodiscard]] bool cover(const SampleTask& task, Account& account, Charge& charge, Bytes beside = {});

  void defer(Deferred picture);

  // Whose turn it is of those for which may_begin(picture), until it is taken or may_stay(picture) no longer; null: none.
  template <class Begin, class Stay>
  const Deferred* next(Begin may_begin, Stay may_stay) {
    if (next_ && !may_stay(*next_)) defer_again(*std::exchange(next_, std::nullopt));
    if (!next_) next_ = waiting_.take(may_begin);
    return next_ ? &*next_ : nullptr;
  }
  std::optional<Charge> charge_next();   // nullopt: there is no room yet. REQUIRES: next()
  Deferred take_next();                  // REQUIRES: next()
  void put_back_next(Deferred picture);  // as before take_next()
  // What was taken of the batch costs so much as expected; and what it did cost.
  [[nodiscard]] TurnCharge charge_turn(const Batch& batch, std::uint64_t cost);
  void correct_turn(const Batch& batch, const TurnCharge& charged, std::uint64_t actual);

  // Those of `batch`, which nobody wants any more: its slot need not wait for others' memory.
  std::vector<Deferred> drop(const Batch& batch);

 private:
  void defer_again(Deferred picture);
  Bytes budget() const { return {ledger_.bounds(Resource::kDecoding).total}; }
  Bytes bytes_of(const SampleTask& task, Bytes beside) const;

  const Ledger& ledger_;
  FairQueue<Deferred> waiting_;
  std::optional<Deferred> next_;
};

}  // namespace millrace
