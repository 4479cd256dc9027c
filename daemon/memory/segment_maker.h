// Makes and frees segments beside the control thread: filling 400 MB of shared memory took 0.46 s on two Sapphire
// Rapids cores in a virtual machine, giving it back 0.14 s.
//
// Thread-safe. Segments may outlive it; they are then freed wherever the last of them is let go.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <functional>
#include <memory>

#include "daemon/memory/segment.h"
#include "daemon/model/stop_flag.h"
#include "proto/base/bytes.h"
#include "proto/base/result.h"

namespace millrace {

class SegmentMaker {
 public:
  // `budget` outlives every segment.
  SegmentMaker(boost::asio::io_context& control, SegmentBudget& budget) : control_(control), budget_(budget) {}
  ~SegmentMaker() { finish(); }

  // One after the other, so whoever goes away stops `unwanted`: others wait for no memory that nobody wants. `done` is
  // called on the control thread. Errors: Segment::create's. Wherever the last user lets go of the segment, its memory
  // is freed here.
  void make(Bytes size, std::shared_ptr<const StopFlag> unwanted,
            std::function<void(Result<std::shared_ptr<Segment>>)> done);

  // Waits for what was asked for; nothing is made from here on, and nothing is posted to the control thread.
  // Idempotent.
  void finish();

 private:
  boost::asio::io_context& control_;
  SegmentBudget& budget_;
  // Shared with the segments, which come back to it when they are let go.
  std::shared_ptr<boost::asio::thread_pool> thread_ = std::make_shared<boost::asio::thread_pool>(1);
};

}  // namespace millrace
