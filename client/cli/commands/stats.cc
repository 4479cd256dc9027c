// millrace stats: what the daemon has done and holds, once or again and again.
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>

#include "client/cli/connection.h"
#include "client/cli/interrupt.h"
#include "client/cli/options.h"
#include "client/cli/text/cost_text.h"
#include "client/cli/text/json.h"
#include "client/cli/text/progress.h"
#include "client/cli/text/stats_text.h"
#include "proto/base/printable.h"

namespace millrace::cli {
namespace {

struct StatsOptions {
  ConnectionOptions connection;
  std::optional<double> watch;  // seconds between looks
  bool all = false;
  bool json = false;
};

void print_look(const Look& look, const std::optional<Look>& before, Figures figures) {
  const Statistics& statistics = look.statistics;
  std::printf("millraced %s, pid %d, up %s\n\n%s%s", printable(statistics.daemon_version).c_str(), statistics.pid,
              clock_text(std::chrono::duration_cast<std::chrono::seconds>(statistics.uptime)).c_str(),
              figures_text(look, before, figures).c_str(),
              (sessions_text(statistics.sessions) + jobs_text(statistics)).c_str());
}

// {"millrace_samples_total": {"backend": {"cpu": 640}}}
void print_labels(const Statistics& statistics, Json& json) {
  json.key("labels").begin_object();
  for (const Metric& metric : statistics.metrics) {
    if (metric.label.empty()) continue;
    json.key(metric.name).begin_object().key(metric.label).begin_object();
    for (const LabelledValue& one : metric.values) json.member(one.label, one.value);
    json.end_object().end_object();
  }
  json.end_object();
}

// {"millrace_fetch_latency_seconds": {"count": 640, "sum": 0.2, "buckets": [{"below": 0.001, "count": 600}, ...]}}
void print_histograms(const Statistics& statistics, Json& json) {
  json.key("histograms").begin_object();
  for (const Metric& metric : statistics.metrics) {
    if (metric.buckets.empty()) continue;
    json.key(metric.name).begin_object().member("count", metric.value).member("sum", metric.sum);
    json.key("buckets").begin_array();
    for (const Bucket& bucket : metric.buckets) {
      json.begin_object();
      if (!std::isinf(bucket.below)) json.member("below", bucket.below);  // left out: more than any bound
      json.member("count", bucket.count).end_object();
    }
    json.end_array().end_object();
  }
  json.end_object();
}

// {"making": 8.1, "reading": 2.2, ...}: all of them.
void print_states(std::string_view name, const std::vector<StateTime>& states,
                  std::chrono::duration<double> StateTime::*part, Json& json) {
  json.key(name).begin_object();
  for (const StateTime& state : states) json.member(state.state, (state.*part).count());
  json.end_object();
}

// Nothing of an older daemon's, which does not tell.
void print_cost(const SessionStatistics& session, Json& json) {
  if (!session.cost) return;
  json.member("job", session.job);
  add_cost("cost", *session.cost, json);
  json.key("making_seconds").begin_object();
  for (const StageTime& stage : session.making) json.member(stage.stage, stage.time.count());
  json.end_object();
}

void print_look_json(const Statistics& statistics) {
  Json json;
  json.begin_object()
      .member("version", statistics.daemon_version)
      .member("pid", static_cast<std::uint64_t>(statistics.pid));
  json.member("uptime_seconds", statistics.uptime.count()).key("metrics").begin_object();
  for (const Metric& metric : statistics.metrics) json.member(metric.name, metric.value);
  json.end_object();
  print_labels(statistics, json);
  print_histograms(statistics, json);
  json.key("sessions").begin_array();
  for (const SessionStatistics& session : statistics.sessions) {
    json.begin_object().member("id", session.id).member("name", session.name).member("uid", std::uint64_t{session.uid});
    json.member("pid", static_cast<std::uint64_t>(session.pid)).member("slots", std::uint64_t{session.slots});
    json.member("slots_free", std::uint64_t{session.slots_free})
        .member("slots_not_ready", std::uint64_t{session.slots_not_ready})
        .member("slots_withdrawn", std::uint64_t{session.slots_withdrawn})
        .member("segment_bytes", session.segment.count);
    json.member("batches", session.batches)
        .member("samples", session.samples)
        .member("bad_samples", session.bad_samples)
        .member("lane_seconds", session.lanes.count())
        .member("seconds", session.age.count());
    print_states("state_seconds", session.states, &StateTime::time, json);
    print_states("waited_seconds", session.states, &StateTime::waited, json);
    json.member("waits_told", session.waits_told);
    print_cost(session, json);
    json.end_object();
  }
  json.end_array();
  add_costs(statistics, json);
  std::printf("%s\n", json.end_object().text().c_str());
}

int stats(const StatsOptions& options) {
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
    options.json ? print_look_json(look.statistics)
                 : print_look(look, before, options.all ? Figures::kAll : Figures::kNotZero);
    if (!options.watch) return kFine;
    if (!redraw && !options.json) std::puts("");
    std::fflush(stdout);
    before = std::move(look);
    const auto pause = std::chrono::milliseconds(static_cast<std::int64_t>(*options.watch * 1000));
    if (!wait_unless_interrupted(pause)) return kFine;  // watching has no other end
  }
}

}  // namespace

void add_stats(Command app, Chosen& chosen) {
  auto options = std::make_shared<StatsOptions>();  // shared with the callback
  const Command command = app.subcommand("stats", "What has the daemon done, and what does it hold?");
  command.option("--watch", options->watch, "look again every so many SECONDS (default: 2), with rates, until Ctrl-C")
      .optional_value("2")
      .check(real_number(0.1, 86400.0))
      .type_name("[SECONDS]");
  command.flag("--all", options->all, "figures that are 0, too");
  command.flag("--json", options->json, "print one JSON object a look, with all figures");
  add_connection_options(command, options->connection);
  command.footer(
      "Examples:\n  millrace stats\n  millrace stats --watch\n  millrace stats --json | jq "
      ".metrics.millrace_samples_total");
  command.callback([options, &chosen] { chosen = [options] { return stats(*options); }; });
}

}  // namespace millrace::cli
