// A card as one opener of it has it: its buffers, its compute units, and how many of its commands finished since it last
// asked. Outlives its commands in flight.
//
// Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "hls/card/shim/buffer.h"

namespace xrt_core {
class device;
}

namespace millrace::card {

class Card;

class Client {
 public:
  explicit Client(Card& card) : card_(card) {}

  Card& card() const { return card_; }
  // XRT's own object for this handle, which lives as long as it is open.
  void keep(std::shared_ptr<xrt_core::device> device);

  unsigned add(std::shared_ptr<Buffer> buffer);
  std::shared_ptr<Buffer> buffer(unsigned handle) const;  // nullptr: there is none
  std::shared_ptr<Buffer> remove(unsigned handle);        // likewise

  void finished();
  // False: none finished before `limit`; a negative limit is none.
  bool wait_finished(std::chrono::milliseconds limit);

  // Gives up everything but commands in flight.
  void close();

 private:
  Card& card_;
  mutable std::mutex mutex_;
  std::condition_variable some_finished_;
  std::uint64_t finished_ = 0;
  unsigned next_ = 1;
  std::map<unsigned, std::shared_ptr<Buffer>> buffers_;
  std::shared_ptr<xrt_core::device> device_;
};

}  // namespace millrace::card
