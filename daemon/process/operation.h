// What administrators, and SIGHUP, have done to the running daemon: its settings read again, drained, put to work again.
//
//   reload() ──▶ mr-settings: file, names, roots ──post──▶ control: put_in_force(), all or nothing
//
//   serving ──drain()──▶ draining ──nothing under way, daemon.drain_seconds──▶ drained ──ThenStop::kYes──▶ Lifetime::end()
//      ▲                    └──────────────────────────────resume()──────────────┤
//      └─────────────────────────────────────────────────────────────────────────┘
//
// Thread-bound(control).
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "daemon/process/command_line.h"
#include "daemon/process/lifetime.h"
#include "daemon/process/live_settings.h"
#include "daemon/serve/rpc/daemon_orders.h"
#include "daemon/settings/settings.h"

namespace millrace {

class Operation final : public DaemonOrders {
 public:
  // `in_force`: everybody's settings, whose live ones change here; `parts`: what has them. All but `line` outlives this,
  // and what `parts` names outlives run().
  Operation(boost::asio::io_context& control, CommandLine line, const UnmappedIds& unmapped, Settings& in_force,
            Lifetime& lifetime, const LiveParts& parts);
  ~Operation() override;  // waits for a file that is being read
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  void reload(const std::string& who, std::function<void(Result<FileReading>)> done) override;
  void compare(std::function<void(Result<FileReading>)> done) override;
  void drain(const std::string& who, ThenStop then) override;
  bool resume(const std::string& who) override;
  Draining draining() const override;

 private:
  using Prepared = Result<std::optional<PreparedSettings>>;  // nullopt: not wanted
  enum class Then : std::uint8_t { kCompare, kPutInForce };
  struct WasRead {
    Result<Settings> settings;
    Prepared prepared;
  };

  void read_next();
  void read(Then then, std::function<void(WasRead)> done);
  WasRead read_file(Then then, const Settings& in_force) const;
  FileReading take(const std::string& who, WasRead read);
  void drained();

  boost::asio::io_context& control_;
  const CommandLine line_;
  const UnmappedIds unmapped_;
  Settings& in_force_;
  Lifetime& lifetime_;
  const LiveParts parts_;
  std::thread reader_;                                                // joinable: the file is being read
  std::deque<std::function<void()>> waiting_;                         // for their turn to read it
  std::optional<std::chrono::steady_clock::time_point> drain_until_;  // set: draining
  boost::asio::steady_timer patience_{control_};
  boost::asio::steady_timer told_{control_};
  bool stops_ = false;
};

}  // namespace millrace
