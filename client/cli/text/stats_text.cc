#include "client/cli/text/stats_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <functional>
#include <string_view>
#include <utility>

#include "client/cli/text/progress.h"
#include "proto/base/printable.h"

namespace millrace::cli {
namespace {

constexpr const char* kOther = "Other";
constexpr std::array kHeadings{
    "Sessions", "Memory",     "Batches", "Images", "Time", "Seek indexes of JPEG files", "What is kept of images",
    "Host",     "FPGA cards", kOther};

// By how a figure's name begins: the first that fits.
constexpr std::pair<std::string_view, std::size_t> kHeadingOf[] = {
    {"millrace_sessions", 0},
    {"millrace_handoff", 0},
    {"millrace_segment", 1},
    {"millrace_slots", 1},
    {"millrace_encoded_in_flight", 1},
    {"millrace_decoding", 1},
    {"millrace_requests_bytes", 1},
    {"millrace_batch", 2},
    {"millrace_requests", 2},
    {"millrace_samples", 3},
    {"millrace_bad", 3},
    {"millrace_encoded", 3},
    {"millrace_tensor", 3},
    {"millrace_fetch", 4},
    {"millrace_queue", 4},
    {"millrace_decode", 4},
    {"millrace_transform", 4},
    {"millrace_lane", 4},
    {"millrace_index", 5},
    {"millrace_cache", 6},
    {"millrace_first_touches", 6},
    {"millrace_store", 6},
    {"millrace_roots", 7},
    {"millrace_reads", 7},
    {"millrace_devices", 7},
    {"millrace_descriptors", 7},
    {"millrace_card", 8},
};

std::size_t heading_of(const Metric& metric) {
  for (const auto& [beginning, heading] : kHeadingOf) {
    if (metric.name.starts_with(beginning)) return heading;
  }
  return kHeadings.size() - 1;
}

template <class... Values>
std::string formatted(const char* format, Values... values) {
  std::array<char, 256> text{};
  std::snprintf(text.data(), text.size(), format, values...);
  return text.data();
}

std::string value_text(const std::string& unit, double value) {
  if (unit == "bytes") return to_text(Bytes{static_cast<std::uint64_t>(std::max(0.0, value))});
  if (unit == "seconds") return formatted("%.3f s", value);
  return value < 0 ? std::to_string(static_cast<std::int64_t>(value))
                   : grouped(static_cast<std::uint64_t>(std::llround(value)));
}

std::string rate_text(const Metric& metric, const Look& look, const std::optional<Look>& before) {
  if (!before || !metric.counter) return "";
  for (const Metric& old : before->statistics.metrics) {
    if (old.name != metric.name) continue;
    const double seconds = std::chrono::duration<double>(look.at - before->at).count();
    const double rate = (metric.value - old.value) / seconds;
    return "  " + (metric.unit.empty() ? formatted("%.1f", rate) : value_text(metric.unit, rate)) + "/s";
  }
  return "";
}

// Half of the durations, or 99 of 100, were shorter than this.
std::string quantile_text(const Metric& histogram, double part) {
  if (histogram.value == 0) return "none";
  for (const Bucket& bucket : histogram.buckets) {
    if (static_cast<double>(bucket.count) < part * histogram.value) continue;
    return std::isinf(bucket.below) ? "over a minute" : formatted("< %.3g ms", bucket.below * 1000);
  }
  return "none";
}

std::string histogram_text(const Metric& metric) {
  return formatted("  %-58s %14s", printable(metric.help).c_str(), value_text("", metric.value).c_str()) + "  median " +
         quantile_text(metric, 0.5) + ", 99 % " + quantile_text(metric, 0.99) + '\n';
}

std::string labelled_text(const Metric& metric) {
  std::string text;
  for (const LabelledValue& one : metric.values) {
    if (one.value == 0) continue;
    const std::string label = metric.label + ' ' + printable(one.label);
    text += formatted("    %-56.56s %14s\n", label.c_str(), value_text(metric.unit, one.value).c_str());
  }
  return text;
}

using StatePart = std::chrono::duration<double> StateTime::*;

// "making 61 %, reading 30 %, client 5 %": the three largest parts of `all`, those under a percent left out.
std::string largest_states(std::vector<StateTime> states, StatePart part, std::chrono::duration<double> all) {
  constexpr std::size_t kShown = 3;
  constexpr double kLeast = 0.01;
  std::ranges::stable_sort(states, std::ranges::greater(), part);
  std::string text;
  for (std::size_t i = 0; i < std::min(kShown, states.size()); ++i) {
    const double share = states[i].*part / all;
    if (!(share >= kLeast)) break;
    text += (text.empty() ? "" : ", ") + printable(states[i].state) + formatted(" %.0f %%", 100 * share);
  }
  return text;
}

// Nothing of an older daemon's, which does not tell.
std::string time_text(const SessionStatistics& session) {
  if (session.states.empty()) return "";
  std::string text =
      formatted("session %llu: %.1f s: ", static_cast<unsigned long long>(session.id), session.age.count()) +
      largest_states(session.states, &StateTime::time, session.age);
  std::chrono::duration<double> waited{};
  for (const StateTime& state : session.states) waited += state.waited;
  if (session.waits_told == 0) return text + "; its program has not said yet how long it waited\n";
  text += formatted("; its program waited %.1f s", waited.count());
  const std::string parts = largest_states(session.states, &StateTime::waited, waited);
  return text + (parts.empty() ? "" : ": " + parts) + '\n';
}

}  // namespace

std::string figures_text(const Look& look, const std::optional<Look>& before, Figures figures) {
  std::array<std::string, kHeadings.size()> lines;
  std::size_t left_out = 0;
  for (const Metric& metric : look.statistics.metrics) {
    if (metric.value == 0 && figures == Figures::kNotZero) {
      ++left_out;
      continue;
    }
    std::string& line = lines[heading_of(metric)];
    if (!metric.buckets.empty()) {
      line += histogram_text(metric);
      continue;
    }
    line += formatted("  %-58s %14s", printable(metric.help).c_str(), value_text(metric.unit, metric.value).c_str()) +
            rate_text(metric, look, before) + '\n' + labelled_text(metric);
  }
  std::string text;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!lines[i].empty()) text += std::string(kHeadings[i]) + '\n' + lines[i];
  }
  if (left_out > 0) text += formatted("(%zu figures that are 0 are left out; --all shows them)\n", left_out);
  return text;
}

std::string sessions_text(const std::vector<SessionStatistics>& sessions) {
  if (sessions.empty()) return "";
  std::string text = formatted("\n%6s  %-18s %6s %8s  %-9s %10s %9s %11s %6s %9s\n", "ID", "SESSION", "UID", "PID",
                               "FREE", "MEMORY", "BATCHES", "IMAGES", "BAD", "LANES");
  for (const SessionStatistics& session : sessions) {
    const std::string free = std::to_string(session.slots_free) + " of " + std::to_string(session.slots);
    text += formatted("%6llu  %-18.18s %6u %8d  %-9s %10s %9s %11s %6s %7.1f s\n",
                      static_cast<unsigned long long>(session.id), printable(session.name).c_str(), session.uid,
                      session.pid, free.c_str(), to_text(session.segment).c_str(), grouped(session.batches).c_str(),
                      grouped(session.samples).c_str(), grouped(session.bad_samples).c_str(), session.lanes.count());
  }
  for (const SessionStatistics& session : sessions) text += time_text(session);
  for (const SessionStatistics& session : sessions) {
    if (session.slots_not_ready > 0)
      text += formatted("session %llu: %u slots are still being filled\n", static_cast<unsigned long long>(session.id),
                        session.slots_not_ready);
    if (session.slots_withdrawn > 0)
      text += formatted("session %llu: no room for %u more slots that it asked for; see the daemon's log\n",
                        static_cast<unsigned long long>(session.id), session.slots_withdrawn);
  }
  return text;
}

}  // namespace millrace::cli
