// Makes, fills and frees segments beside the control thread. Filling takes a second or more for each gigabyte, so a
// segment is handed out when its first slots are filled, and the rest follows slot by slot:
//
//   make() ─▶ reserve ─▶ filling ──the first slots, at most 32 MiB──▶ `made` ─▶ filling ──a slot──▶ `grown` ...
//                │          │ no room                                             │ no room, `unwanted`
//                └──────────┴────▶ `made`, an error                               └────▶ `grown`, the last time
//
// One thread fills, in portions of 8 MiB and in turns: first slots before others' rest, user by user. So nobody's large
// segment holds up another one. Another thread frees.
//
// Thread-safe. Segments may outlive it; they are then freed wherever the last of them is let go.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "daemon/admit/ledger.h"
#include "daemon/memory/portion_turns.h"
#include "daemon/memory/segment.h"
#include "daemon/model/stop_flag.h"
#include "proto/base/bytes.h"
#include "proto/base/result.h"

namespace millrace {

// What to make: `head` bytes, then slots.
struct SegmentOrder {
  Bytes size;  // of all: head and slots
  Bytes head;
  Bytes stride;  // of a slot
  std::uint32_t slots = 1;
  bool whole = false;      // handed out when all of it is filled, and not before
  std::uint32_t user = 0;  // whose turns it takes
};

// How far a segment has come since it was handed out.
struct SegmentProgress {
  std::uint32_t slots = 0;       // filled, from the first on
  std::optional<Error> no_room;  // set: these are all that it will ever have, and why
};

class SegmentMaker {
 public:
  // `promised` outlives every segment.
  SegmentMaker(boost::asio::io_context& control, PromisedMemory& promised) : control_(control), promised_(promised) {}
  ~SegmentMaker() { finish(); }

  struct Answers {
    // Once. Errors: Segment's; kCancelled: `unwanted`.
    std::function<void(Result<std::shared_ptr<Segment>>)> made;
    // After that, whenever there is another filled slot, and once if there will be no more.
    std::function<void(SegmentProgress)> grown;
  };
  // A caller that goes away stops `unwanted`, before or after it was handed out: nothing more is filled then. Answers
  // come on the control thread. Wherever the last user lets go of the segment, its memory is freed by a thread of here.
  // REQUIRES: `charge` is of order.size.
  void make(const SegmentOrder& order, Charge charge, std::shared_ptr<const StopFlag> unwanted, Answers answers);

  // Nothing is made or filled from here on, and when it returns nothing is posted to the control thread any more.
  // Idempotent.
  void finish();

 private:
  struct Filling {
    SegmentOrder order;
    Charge charge;  // until there is a segment
    std::shared_ptr<const StopFlag> unwanted;
    Answers answers;
    std::shared_ptr<Segment> segment;
    std::uint32_t slots = 0;  // filled
    bool handed_out = false;
  };

  // On the filling thread:
  void begin(Filling filling);
  void queue(Filling filling);
  void fill_next();
  void fill_portion(Filling filling);
  void tell(Filling& filling);
  void end(Filling& filling, Error why);

  boost::asio::io_context& control_;
  PromisedMemory& promised_;
  StopFlag stopping_;
  PortionTurns<Filling> turns_;  // the filling thread's alone
  boost::asio::thread_pool filling_{1};
  // Shared with the segments, which come back to it when they are let go.
  std::shared_ptr<boost::asio::thread_pool> freeing_ = std::make_shared<boost::asio::thread_pool>(1);
};

}  // namespace millrace
