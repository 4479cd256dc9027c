// From the first client to the last: serving, signals, signs of life for the service manager, and the way out.
//
//   run() ──▶ serving ──SIGTERM, SIGINT──▶ draining ──▶ stopped: run() returns
//                                                     │
//                          nothing is under way, daemon.drain_seconds are over, or a second signal
//
// Thread-bound(control), which is who calls run().
#pragma once

#include <signal.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include "daemon/fetch/fetcher.h"
#include "daemon/observe/bounded_log.h"
#include "daemon/observe/supervisor.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/serve/rpc/daemon_orders.h"
#include "daemon/serve/rpc/grpc_server.h"
#include "daemon/serve/sessions/session_table.h"
#include "daemon/settings/settings.h"
#include "proto/base/bytes.h"

namespace millrace {

class Lifetime {
 public:
  // What stops in turn. All of it outlives run().
  struct Parts {
    const Fetcher& fetcher;
    Pipeline& pipeline;
    SessionTable& sessions;
    GrpcServer& grpc;
    DaemonOrders& orders;
    bool has_settings_file;  // that SIGHUP has read again; without one it means the end, as at a terminal's
  };

  // From here on a signal to end waits for run(). Both outlive this.
  Lifetime(boost::asio::io_context& control, const Settings& settings) : control_(control), settings_(settings) {}

  ~Lifetime();  // waits for memory that is being given back
  Lifetime(const Lifetime&) = delete;
  Lifetime& operator=(const Lifetime&) = delete;

  // Runs the event loop until it has been told to stop and has drained. From then on the process ends by itself within
  // ten seconds, with 0, whatever its threads wait for, but for a FUSE server that has taken a request.
  void run(const Parts& parts);

  // As a signal does, and a second one at once: nothing is waited for. REQUIRES: run().
  void end();
  bool ending() const { return draining_; }

 private:
  void wait_for_hangup();
  void drain();
  void stop();
  void report();
  void give_back_memory();
  void trim(Bytes much);
  std::string status() const;
  bool lanes_stuck();

  boost::asio::io_context& control_;
  const Settings& settings_;
  boost::asio::signal_set signals_{control_, SIGTERM, SIGINT};
  boost::asio::signal_set hangup_{control_, SIGHUP};
  boost::asio::steady_timer patience_{control_};
  const Supervisor supervisor_ = Supervisor::of_this_process();
  boost::asio::steady_timer reports_{control_};
  boost::asio::steady_timer memory_{control_};
  bool trimming_ = false;
  std::thread trimmer_;  // while trimming_, and until the next
  Bytes kept_;           // the trimmer's alone: freed memory that its last trim left, or less if less is freed now
  std::optional<Parts> parts_;
  bool draining_ = false, stopping_ = false, stuck_ = false;
  SeldomLine reading_line_;
};

}  // namespace millrace
