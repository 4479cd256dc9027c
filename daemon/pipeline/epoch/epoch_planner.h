// Shuffles epochs of millions of samples on a thread of its own, beside the control thread. Who asks for many waits for
// them himself: users take turns, and their sessions, each by how many samples it had shuffled.
//
//   plan(), foresee() ──▶ waits ──its turn──▶ is worked out ──▶ `done`, on the control thread
//                           └── forget()
//
// How many wait is bounded by those who may ask: Resource::kEpochs. Thread-bound(control).
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <cstdint>
#include <functional>
#include <memory>

#include "daemon/model/owner.h"
#include "daemon/pipeline/turns/fair_queue.h"
#include "daemon/plan/epoch_order.h"
#include "daemon/plan/known_positions.h"

namespace millrace {

class EpochPlanner {
 public:
  struct Planned {
    Result<EpochOrder> order;
    std::shared_ptr<const EpochPositions> positions;  // nullptr: not wanted, or not known
  };
  enum class Positions : std::uint8_t { kNo, kWanted };

  // `shares`: the users' weights. Both outlive it.
  EpochPlanner(boost::asio::io_context& control, const UserShares& shares, Positions positions)
      : control_(control), positions_(positions), jobs_(shares) {}
  ~EpochPlanner() {
    thread_.stop();
    thread_.join();
  }
  EpochPlanner(const EpochPlanner&) = delete;
  EpochPlanner& operator=(const EpochPlanner&) = delete;

  // `done` is called on the control thread; never after forget(), nor if the planner goes before and the loop runs no
  // more.
  void plan(Owner owner, const EpochOrderSpec& spec, std::function<void(Planned)> done);
  // Likewise; nullptr: not known.
  void foresee(Owner owner, const EpochOrderSpec& spec,
               std::function<void(std::shared_ptr<const EpochPositions>)> done);
  void forget(Owner owner);  // what waits for this session is not worked out any more

 private:
  using Answer = std::function<void()>;
  struct Job {
    Owner owner;
    std::uint64_t cost = 0;
    std::function<Answer()> work;  // the thread's; what it gives is the control thread's
  };

  void add(Job job);
  void begin_next();

  boost::asio::io_context& control_;
  const Positions positions_;
  FairQueue<Job> jobs_;
  bool busy_ = false;     // with one of them
  KnownOrders orders_;    // the thread's
  KnownPositions known_;  // the thread's
  boost::asio::thread_pool thread_{1};
};

}  // namespace millrace
