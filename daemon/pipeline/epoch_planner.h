// Shuffles epochs of millions of samples on a thread of its own, beside the control thread. Thread-bound(control).
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <functional>
#include <memory>
#include <utility>

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

  // `control` outlives it.
  EpochPlanner(boost::asio::io_context& control, Positions positions) : control_(control), positions_(positions) {}
  ~EpochPlanner() {
    thread_.stop();
    thread_.join();
  }

  // `done` is called on the control thread; never, if the planner goes before and the loop runs no more.
  void plan(const EpochOrderSpec& spec, std::function<void(Planned)> done) {
    boost::asio::post(thread_, [this, spec, done = std::move(done)]() mutable {
      Planned planned{EpochOrder::create(spec), nullptr};
      if (positions_ == Positions::kWanted && planned.order) planned.positions = known_.of(spec, *planned.order);
      boost::asio::post(control_,
                        [planned = std::move(planned), done = std::move(done)]() mutable { done(std::move(planned)); });
    });
  }

  // Likewise; nullptr: not known.
  void foresee(const EpochOrderSpec& spec, std::function<void(std::shared_ptr<const EpochPositions>)> done) {
    boost::asio::post(thread_, [this, spec, done = std::move(done)]() mutable {
      boost::asio::post(
          control_, [positions = known_.of(spec), done = std::move(done)]() mutable { done(std::move(positions)); });
    });
  }

 private:
  boost::asio::io_context& control_;
  const Positions positions_;
  KnownPositions known_;  // the thread's
  boost::asio::thread_pool thread_{1};
};

}  // namespace millrace
