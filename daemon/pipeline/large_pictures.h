// Memory for decoding, which all lanes share. A picture that takes more than a lane keeps anyway is charged here, on the
// control thread and before a lane gets it, so no lane ever waits for memory: what finds no room is set aside, and is
// given back in turns (priorities, users and sessions by cost, first in first out). The one whose turn it is keeps it, however long it
// takes, and nothing else is charged meanwhile, so none starves. Thread-bound(control).
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "daemon/backend/backend.h"
#include "daemon/observe/counters.h"
#include "daemon/pipeline/batch.h"
#include "daemon/pipeline/byte_budget.h"
#include "daemon/pipeline/fair_queue.h"

namespace millrace {

class LargePictures {
 public:
  // A large picture for which there was no room.
  struct SetAside {
    InFlight batch;
    std::size_t backend;
    SampleTask task;
  };

  LargePictures(Bytes limit, Counters& counters) : budget_(limit, MetricId::decoding_in_use, counters) {}

  // kExhausted: it surely takes more than the whole budget.
  Result<void> check(const SampleTask& task) const;

  // Makes `charge` large enough for `task` as well: a lane decodes one picture after the other, so of those in a job the
  // largest counts. false: there is no room, or others wait for some already; then nothing is charged.
  [[nodiscard]] bool cover(const SampleTask& task, ByteBudget::Charge& charge);

  void set_aside(SetAside picture);

  // Whose turn it is, until it is taken; null: none waits.
  const SetAside* next();
  bool next_has_room() const;                                // REQUIRES: next()
  ByteBudget::Charge charge_next();                          // REQUIRES: next_has_room()
  SetAside take_next();                                      // REQUIRES: next()
  void put_back_next(SetAside picture);                      // as before take_next()
  void charge_turn(const Batch& batch, std::uint64_t cost);  // what was taken of it costs so much

  // Those of `batch`, which nobody wants any more: its slot need not wait for others' memory.
  std::vector<SetAside> drop(const Batch& batch);

 private:
  Bytes bytes_of(const SampleTask& task) const;

  ByteBudget budget_;
  FairQueue<SetAside> waiting_;
  std::optional<SetAside> next_;
};

}  // namespace millrace
