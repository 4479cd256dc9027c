// Shuffles epochs of millions of samples on a thread of its own, beside the control thread. Thread-bound(control).
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <functional>
#include <utility>

#include "daemon/plan/epoch_order.h"

namespace millrace {

class EpochPlanner {
 public:
  explicit EpochPlanner(boost::asio::io_context& control) : control_(control) {}  // outlives it
  ~EpochPlanner() {
    thread_.stop();
    thread_.join();
  }

  // `done` is called on the control thread; never, if the planner goes before and the loop runs no more.
  void plan(const EpochOrderSpec& spec, std::function<void(Result<EpochOrder>)> done) {
    boost::asio::post(thread_, [&control = control_, spec, done = std::move(done)]() mutable {
      boost::asio::post(
          control, [order = EpochOrder::create(spec), done = std::move(done)]() mutable { done(std::move(order)); });
    });
  }

 private:
  boost::asio::io_context& control_;
  boost::asio::thread_pool thread_{1};
};

}  // namespace millrace
