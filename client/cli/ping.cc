// millrace ping: is the daemon there, which one, how long does a round trip take.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <vector>

#include "client/cli/connection.h"
#include "client/cli/interrupt.h"
#include "client/cli/json.h"
#include "client/cli/numbers.h"
#include "proto/base/printable.h"

namespace millrace::cli {
namespace {

struct Options {
  ConnectionOptions connection;
  std::uint32_t count = 10;
  bool json = false;
};

double microseconds(std::chrono::nanoseconds time) {
  return static_cast<double>(time.count()) / 1e3;
}

void print(const Options& options, const Client& client, const Statistics& statistics,
           const std::vector<std::chrono::nanoseconds>& sorted) {
  const double least = microseconds(sorted.front());
  const double median = microseconds(sorted[sorted.size() / 2]);
  const double most = microseconds(sorted.back());
  if (options.json) {
    Json json;
    json.begin_object().member("version", statistics.daemon_version).member("library_version", library_version());
    json.member("pid", static_cast<std::uint64_t>(statistics.pid)).member("socket", client.socket());
    json.member("round_trips", std::uint64_t{sorted.size()})
        .member("min_us", least)
        .member("median_us", median)
        .member("max_us", most);
    std::printf("%s\n", json.end_object().text().c_str());
    return;
  }
  std::printf("millraced %s (pid %d) is serving at unix:%s\n", printable(statistics.daemon_version).c_str(),
              statistics.pid, printable(client.socket()).c_str());
  std::printf("%zu round trips: min %.0f us, median %.0f us, max %.0f us\n", sorted.size(), least, median, most);
}

int ping(const Options& options) {
  auto connection = open_connection(options.connection);
  if (!connection) return report(connection.error());
  Client& client = connection->client;
  if (auto warm = client.ping(); !warm) return report(warm.error());  // the first one pays for what is made once
  std::vector<std::chrono::nanoseconds> times;
  watch_for_interrupt();
  while (times.size() < options.count && !interrupted()) {
    const auto time = client.ping();
    if (!time) return report(time.error());
    times.push_back(*time);
  }
  if (times.empty()) return kInterrupted;
  std::sort(times.begin(), times.end());
  const auto statistics = client.statistics();
  if (!statistics) return report(statistics.error());
  print(options, client, *statistics, times);
  return interrupted() ? kInterrupted : kFine;
}

}  // namespace

void add_ping(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<Options>();  // shared with the callbacks that CLI11 copies
  CLI::App* command = app.add_subcommand("ping", "Is the daemon there, and how long does a round trip take?");
  command->add_option("-c,--count", options->count, "round trips")
      ->check(whole_number(1, 1'000'000))
      ->capture_default_str();
  command->add_flag("--json", options->json, "print one JSON object");
  add_connection_options(*command, options->connection);
  command->footer(
      "Examples:\n  millrace ping\n  millrace ping -c 1000 --json\n  millrace ping --socket /tmp/m.sock || echo not "
      "there");
  command->callback([options, &chosen] { chosen = [options] { return ping(*options); }; });
}

}  // namespace millrace::cli
