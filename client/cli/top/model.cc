#include "client/cli/top/model.h"

#include <algorithm>
#include <string_view>

#include "proto/base/printable.h"

namespace millrace::cli {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr double kWorthACause = 0.01;  // of the time

const Metric* metric_named(const Statistics& statistics, std::string_view name) {
  const auto found = std::ranges::find(statistics.metrics, name, &Metric::name);
  return found == statistics.metrics.end() ? nullptr : &*found;
}

double figure(const Statistics& statistics, std::string_view name) {
  const Metric* metric = metric_named(statistics, name);
  return metric == nullptr ? 0 : metric->value;
}

Bytes bytes(const Statistics& statistics, std::string_view name) {
  return Bytes{static_cast<std::uint64_t>(std::max(figure(statistics, name), 0.0))};
}

double labelled(const Statistics& statistics, std::string_view name, const std::string& label) {
  const Metric* metric = metric_named(statistics, name);
  if (metric == nullptr) return 0;
  const auto found = std::ranges::find(metric->values, label, &LabelledValue::label);
  return found == metric->values.end() ? 0 : found->value;
}

double rate(double more, Seconds time) {
  return time.count() > 0 ? std::max(more, 0.0) / time.count() : 0;
}

template <class Range>
auto* with_id(Range& range, std::uint64_t id) {
  const auto found = std::ranges::find_if(range, [id](const auto& one) { return one.id == id; });
  return found == range.end() ? nullptr : &*found;
}

// "slow_disk": "slow disk".
std::string in_words(std::string_view code) {
  std::string words = printable(code);
  std::ranges::replace(words, '_', ' ');
  return words;
}

// What a session does most, where its daemon finds no causes: while its program waits, if that is told.
std::string largest_state(const SessionStatistics& session) {
  const StateTime* largest = nullptr;
  const auto part = session.waits_told > 0 ? &StateTime::waited : &StateTime::time;
  for (const StateTime& state : session.states) {
    if (((state.*part).count() > 0) && (largest == nullptr || state.*part > largest->*part)) largest = &state;
  }
  return largest == nullptr ? "" : in_words(largest->state);
}

Seconds waited_of(const SessionStatistics& session) {
  Seconds waited{};
  for (const StateTime& state : session.states) waited += state.waited;
  return waited;
}

// Since `before`; null: since the session was opened.
void add_rates(const SessionStatistics& now, const SessionStatistics* before, Seconds since_before,
               TopSession& session) {
  static const SessionStatistics kBegun;
  const SessionStatistics& then = before == nullptr ? kBegun : *before;
  const Seconds time = before == nullptr ? now.age : since_before;
  session.images_per_second = rate(static_cast<double>(now.samples) - static_cast<double>(then.samples), time);
  session.lanes = rate((now.lanes - then.lanes).count(), time);
  if (now.waits_told > 0 && time.count() > 0)
    session.waited = std::clamp((waited_of(now) - waited_of(then)) / time, 0.0, 1.0);
}

void add_findings(const SessionFindings& findings, TopSession& session) {
  session.images_per_second = findings.images_per_second;
  session.waited = findings.waits_told ? std::optional(findings.waited) : std::nullopt;
  session.time = findings.time;
  for (const millrace::Finding& finding : findings.findings) {
    TopCause cause{.code = in_words(finding.code),
                   .share = finding.share,
                   .text = printable(finding.text),
                   .advice = printable(finding.advice),
                   .images_per_second = finding.images_per_second};
    for (const std::string& path : finding.paths) cause.paths.push_back(printable(path));
    session.causes.push_back(std::move(cause));
  }
  session.cause = session.causes.empty() ? "" : session.causes.front().code;
}

TopSession session_of(const SessionStatistics& now, const TopLook& look, const TopLook* before) {
  const auto user = look.users.find(now.uid);
  TopSession session{.id = now.id,
                     .pid = now.pid,
                     .name = printable(now.name),
                     .user = user == look.users.end() ? std::to_string(now.uid) : printable(user->second),
                     .job = printable(now.job.empty() ? now.name : now.job),
                     .slots = now.slots,
                     .slots_free = now.slots_free,
                     .batches = now.batches,
                     .bad = now.bad_samples,
                     .memory = now.segment};
  const SessionStatistics* then = before == nullptr ? nullptr : with_id(before->statistics.sessions, now.id);
  add_rates(now, then, before == nullptr ? Seconds{} : Seconds(look.at - before->at), session);
  const SessionFindings* findings = look.findings ? with_id(*look.findings, now.id) : nullptr;
  if (findings != nullptr)
    add_findings(*findings, session);
  else if (session.waited.value_or(1) >= kWorthACause)
    session.cause = largest_state(now);
  return session;
}

}  // namespace

TopModel top_model(const TopLook& look, const std::optional<TopLook>& last) {
  const Statistics& now = look.statistics;
  const TopLook* before =
      last && last->statistics.pid == now.pid && last->statistics.uptime <= now.uptime ? &*last : nullptr;
  const Seconds time = before == nullptr ? now.uptime : Seconds(look.at - before->at);
  const auto since = [&](auto of) { return of(now) - (before == nullptr ? 0 : of(before->statistics)); };
  TopModel model{.version = printable(now.daemon_version),
                 .pid = now.pid,
                 .uptime = std::chrono::duration_cast<std::chrono::seconds>(now.uptime),
                 .explains = look.findings.has_value()};
  model.images_per_second =
      rate(since([](const Statistics& of) { return figure(of, "millrace_samples_total"); }), time);
  for (const Device& device : look.devices) {
    const auto made = [&](const Statistics& of) { return labelled(of, "millrace_samples_total", device.backend); };
    model.devices.push_back({.name = printable(device.backend),
                             .is_ready = device.ready,
                             .lanes = device.lanes,
                             .images_per_second = rate(since(made), time)});
  }
  model.kept_in_memory = bytes(now, "millrace_cache_bytes");
  model.kept_on_disk = bytes(now, "millrace_cache_disk_bytes");
  const double hits = figure(now, "millrace_cache_hits_total"), misses = figure(now, "millrace_cache_misses_total");
  if (hits + misses > 0) model.kept_hits = hits / (hits + misses);
  model.tensors = bytes(now, "millrace_segment_bytes");
  model.encoded = bytes(now, "millrace_encoded_in_flight_bytes");
  model.decoding = bytes(now, "millrace_decoding_bytes");
  model.requests = bytes(now, "millrace_requests_bytes");
  for (const SessionStatistics& session : now.sessions) model.sessions.push_back(session_of(session, look, before));
  return model;
}

}  // namespace millrace::cli
