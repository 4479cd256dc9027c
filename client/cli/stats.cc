// millrace stats: what the daemon has done and holds, once or again and again.
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>

#include "client/cli/connection.h"
#include "client/cli/interrupt.h"
#include "client/cli/json.h"
#include "client/cli/progress.h"
#include "proto/base/printable.h"

namespace millrace::cli {
namespace {

struct Options {
  ConnectionOptions connection;
  std::optional<double> watch;  // seconds between looks
  bool json = false;
};

// A look, and the one before it for rates.
struct Look {
  Statistics statistics;
  std::chrono::steady_clock::time_point at;
};

std::string value_text(const std::string& unit, double value) {
  if (unit == "bytes") return to_text(Bytes{static_cast<std::uint64_t>(std::max(0.0, value))});
  if (unit == "seconds") {
    char text[32];
    std::snprintf(text, sizeof text, "%.3f s", value);
    return text;
  }
  return value < 0 ? std::to_string(static_cast<std::int64_t>(value))
                   : grouped(static_cast<std::uint64_t>(std::llround(value)));
}

std::string rate_text(const Metric& metric, const std::optional<Look>& before,
                      std::chrono::steady_clock::time_point now) {
  if (!before || !metric.counter) return "";
  for (const Metric& old : before->statistics.metrics) {
    if (old.name != metric.name) continue;
    const double seconds = std::chrono::duration<double>(now - before->at).count();
    const double rate = (metric.value - old.value) / seconds;
    if (metric.unit.empty()) {
      char text[32];
      std::snprintf(text, sizeof text, "%.1f/s", rate);
      return text;
    }
    return value_text(metric.unit, rate) + "/s";
  }
  return "";
}

void print_sessions(const std::vector<SessionStatistics>& sessions) {
  if (sessions.empty()) return;
  std::printf("\n%6s  %-18s %6s %8s  %-9s %10s %9s %11s %6s\n", "ID", "SESSION", "UID", "PID", "FREE", "MEMORY",
              "BATCHES", "IMAGES", "BAD");
  for (const SessionStatistics& session : sessions) {
    const std::string free = std::to_string(session.slots_free) + " of " + std::to_string(session.slots);
    std::printf("%6llu  %-18.18s %6u %8d  %-9s %10s %9s %11s %6s\n", static_cast<unsigned long long>(session.id),
                printable(session.name).c_str(), session.uid, session.pid, free.c_str(),
                to_text(session.segment).c_str(), grouped(session.batches).c_str(), grouped(session.samples).c_str(),
                grouped(session.bad_samples).c_str());
  }
}

void print(const Look& look, const std::optional<Look>& before) {
  const Statistics& statistics = look.statistics;
  std::printf("millraced %s, pid %d, up %s\n\n", printable(statistics.daemon_version).c_str(), statistics.pid,
              clock_text(std::chrono::duration_cast<std::chrono::seconds>(statistics.uptime)).c_str());
  for (const Metric& metric : statistics.metrics) {
    const std::string rate = rate_text(metric, before, look.at);
    std::printf("%-58.58s %14s%s%s\n", printable(metric.help).c_str(), value_text(metric.unit, metric.value).c_str(),
                rate.empty() ? "" : "  ", rate.c_str());
  }
  print_sessions(statistics.sessions);
}

void print_json(const Statistics& statistics) {
  Json json;
  json.begin_object()
      .member("version", statistics.daemon_version)
      .member("pid", static_cast<std::uint64_t>(statistics.pid));
  json.member("uptime_seconds", statistics.uptime.count()).key("metrics").begin_object();
  for (const Metric& metric : statistics.metrics) json.member(metric.name, metric.value);
  json.end_object().key("sessions").begin_array();
  for (const SessionStatistics& session : statistics.sessions) {
    json.begin_object().member("id", session.id).member("name", session.name).member("uid", std::uint64_t{session.uid});
    json.member("pid", static_cast<std::uint64_t>(session.pid)).member("slots", std::uint64_t{session.slots});
    json.member("slots_free", std::uint64_t{session.slots_free}).member("segment_bytes", session.segment.count);
    json.member("batches", session.batches)
        .member("samples", session.samples)
        .member("bad_samples", session.bad_samples)
        .end_object();
  }
  std::printf("%s\n", json.end_array().end_object().text().c_str());
}

int stats(const Options& options) {
  auto connection = open_connection(options.connection);
  if (!connection) return report(connection.error());
  const bool redraw = options.watch && !options.json && ::isatty(STDOUT_FILENO) != 0;
  std::optional<Look> before;
  watch_for_interrupt();
  for (;;) {
    auto statistics = connection->client.statistics();
    if (!statistics) return report(statistics.error());
    Look look{*std::move(statistics), std::chrono::steady_clock::now()};
    if (redraw) std::fputs("\x1b[H\x1b[2J", stdout);
    options.json ? print_json(look.statistics) : print(look, before);
    if (!options.watch) return kFine;
    if (!redraw && !options.json) std::puts("");
    std::fflush(stdout);
    before = std::move(look);
    const auto pause = std::chrono::milliseconds(static_cast<std::int64_t>(*options.watch * 1000));
    if (!wait_unless_interrupted(pause)) return kFine;  // watching has no other end
  }
}

}  // namespace

void add_stats(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<Options>();  // shared with the callbacks that CLI11 copies
  CLI::App* command = app.add_subcommand("stats", "What has the daemon done, and what does it hold?");
  command
      ->add_option("--watch", options->watch, "look again every so many SECONDS (default: 2), with rates, until Ctrl-C")
      ->expected(0, 1)
      ->default_str("2")
      ->check(CLI::Range(0.1, 86400.0))
      ->type_name("[SECONDS]");
  command->add_flag("--json", options->json, "print one JSON object a look");
  add_connection_options(*command, options->connection);
  command->footer(
      "Examples:\n  millrace stats\n  millrace stats --watch\n  millrace stats --json | jq "
      ".metrics.millrace_samples_total");
  command->callback([options, &chosen] { chosen = [options] { return stats(*options); }; });
}

}  // namespace millrace::cli
