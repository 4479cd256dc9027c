// millrace ping: is the daemon there, which one, how long does a round trip take.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <vector>

#include "client/cli/connection.h"
#include "client/cli/interrupt.h"
#include "client/cli/options.h"
#include "client/cli/text/json.h"
#include "proto/base/printable.h"

namespace millrace::cli {
namespace {

// Within what the daemon allows a user (daemon/serve/rpc/call_meter.h), with room for the calls of the user's jobs.
constexpr std::size_t kAtOnce = 200;
constexpr std::chrono::milliseconds kApart{5};

struct PingOptions {
  ConnectionOptions connection;
  std::uint32_t count = 10;
  bool alive = false;  // there is enough: it may drain, or stop
  bool json = false;
};

double microseconds(std::chrono::nanoseconds time) {
  return static_cast<double>(time.count()) / 1e3;
}

Result<std::chrono::nanoseconds> round_trip(const PingOptions& options, Client& client) {
  if (!options.alive) return client.ping();
  const auto began = std::chrono::steady_clock::now();
  const auto answered = client.statistics();  // of a daemon that takes nothing new as well
  if (!answered) return answered.error();
  return std::chrono::nanoseconds(std::chrono::steady_clock::now() - began);
}

enum class Serving : bool { kNo, kYes };

void print_times(const PingOptions& options, const Client& client, const Statistics& statistics,
                 const std::vector<std::chrono::nanoseconds>& sorted, Serving serving) {
  const double least = microseconds(sorted.front());
  const double median = microseconds(sorted[sorted.size() / 2]);
  const double most = microseconds(sorted.back());
  if (options.json) {
    Json json;
    json.begin_object().member("version", statistics.daemon_version).member("library_version", library_version());
    json.member("pid", static_cast<std::uint64_t>(statistics.pid)).member("socket", client.socket());
    json.member("serving", serving == Serving::kYes);
    json.member("round_trips", std::uint64_t{sorted.size()})
        .member("min_us", least)
        .member("median_us", median)
        .member("max_us", most);
    std::printf("%s\n", json.end_object().text().c_str());
    return;
  }
  std::printf("millraced %s (pid %d) is %s at unix:%s\n", printable(statistics.daemon_version).c_str(), statistics.pid,
              serving == Serving::kYes ? "serving" : "there, stopping or draining: it takes nothing new,",
              printable(client.socket()).c_str());
  std::printf("%zu round trips: min %.0f us, median %.0f us, max %.0f us\n", sorted.size(), least, median, most);
}

int ping(const PingOptions& options) {
  auto connection = open_connection(options.connection);
  if (!connection) return report(connection.error());
  Client& client = connection->client;
  if (auto warm = round_trip(options, client); !warm)
    return report(warm.error());  // the first one pays for what is made once
  std::vector<std::chrono::nanoseconds> times;
  watch_for_interrupt();
  while (times.size() < options.count && !interrupted()) {
    if (times.size() >= kAtOnce && !wait_unless_interrupted(kApart)) break;
    const auto time = round_trip(options, client);
    if (!time) return report(time.error());
    times.push_back(*time);
  }
  if (times.empty()) return kInterrupted;
  std::sort(times.begin(), times.end());
  const auto statistics = client.statistics();
  if (!statistics) return report(statistics.error());
  const Serving serving = options.alive && !client.ping() ? Serving::kNo : Serving::kYes;
  print_times(options, client, *statistics, times, serving);
  return interrupted() ? kInterrupted : kFine;
}

}  // namespace

void add_ping(Command app, Chosen& chosen) {
  auto options = std::make_shared<PingOptions>();  // shared with the callback
  const Command command = app.subcommand("ping", "Is the daemon there, and how long does a round trip take?");
  command.option("-c,--count", options->count, "round trips; after 200 of them, one in 5 ms")
      .check(whole_number(1, 1'000'000))
      .show_default();
  command.flag("--alive", options->alive,
               "Is it there at all? A daemon that drains or stops is; without this option it is not, for it takes "
               "nothing new");
  command.flag("--json", options->json, "print one JSON object");
  add_connection_options(command, options->connection);
  command.footer(
      "Examples:\n  millrace ping\n  millrace ping -c 1000 --json\n  millrace ping --alive -c 1\n  millrace ping "
      "--socket /tmp/m.sock || echo not "
      "there");
  command.callback([options, &chosen] { chosen = [options] { return ping(*options); }; });
}

}  // namespace millrace::cli
