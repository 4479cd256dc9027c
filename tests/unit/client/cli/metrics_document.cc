#include "tests/unit/client/cli/metrics_document.h"

#include <string_view>

#include "client/cli/web/families.h"
#include "daemon/observe/counters.h"

namespace millrace::cli {
namespace {

constexpr std::string_view kIntroduction = R"(# Metrics

`millrace web` serves these figures at `/metrics`, in Prometheus' text format 0.0.4 and in OpenMetrics 1.0:
[web.md](web.md). `config/prometheus` has scrape settings, alerts and a dashboard.

This page is made of the tables that the programs use: `bin/millrace_print_metrics > daemon/doc/metrics.md`. A test
holds it to them.

**Names, kinds, units and labels are a promise.** A release may add figures, and values of labels. A figure changes its
name or meaning only with a line in the changelog, and the old one stays for a release beside it.

- Durations are in seconds, sizes in bytes. Counters begin at 0 with the daemon.
- A label has at most 64 values, `other` among them, which has all that came later. Sums are right.
- Of a figure with a label the values add up to the whole. Before the first one there is a 0 without a label.
- Figures of a session end with the session. Counters of `other` keep what they have: they fall when the daemon or
  `millrace web` starts anew.
- Without a daemon there are `millrace_up`, which is 0, and the figures of `millrace web` itself.

)";

void begin_table(std::string_view title, std::string& text) {
  text.append("## ").append(title).append("\n\n| name | kind | labels | what |\n|---|---|---|---|\n");
}

void add_row(std::string_view name, std::string_view kind, std::string_view labels, std::string_view what,
             std::string& text) {
  std::string shown;
  for (const char c : labels) shown += c == ',' ? "`, `" : std::string(1, c);
  text.append("| `").append(name).append("` | ").append(kind).append(" | ");
  if (!labels.empty()) text.append("`").append(shown).append("`");
  text.append(" | ").append(what).append(" |\n");
}

std::string_view kind_text(FamilyKind kind) {
  switch (kind) {
    case FamilyKind::kCounter:
      return "counter";
    case FamilyKind::kHistogram:
      return "histogram";
    case FamilyKind::kInfo:
      return "info";
    case FamilyKind::kGauge:
      break;
  }
  return "gauge";
}

}  // namespace

std::string metrics_document() {
  std::string text(kIntroduction);
  begin_table("The daemon's table", text);
  for (const MetricRow& row : metric_table())
    add_row(row.name, row.kind == MetricKind::kCounter ? "counter" : "gauge", row.label, row.help, text);
  for (const HistogramRow& row : histogram_table()) add_row(row.name, "histogram", "", row.help, text);
  text += "\n";
  begin_table("Of sessions, jobs, users and processes", text);
  for (const WebFamilyRow& row : web_family_table())
    add_row(row.family.name, kind_text(row.family.kind), row.labels, row.family.help, text);
  text +=
      "\n`process_*` is of the daemon, by `/proc`. It is left out where `/proc` does not show that process: in "
      "another\n"
      "container, or where `hidepid` or `ProtectProc=` hides it. `millrace_descriptors` is there in any case.\n";
  return text;
}

}  // namespace millrace::cli
