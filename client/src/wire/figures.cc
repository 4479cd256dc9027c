#include "client/src/wire/figures.h"

#include <chrono>

namespace millrace {
inline namespace client {
namespace {

using Seconds = std::chrono::duration<double>;

Metric to_metric(const v1::Metric& metric) {
  Metric found{.name = metric.name(),
               .unit = metric.unit(),
               .help = metric.help(),
               .counter = metric.kind() == v1::METRIC_KIND_COUNTER,
               .value = metric.value(),
               .label = metric.label(),
               .sum = metric.sum()};
  for (const v1::LabelledValue& one : metric.values()) found.values.push_back({one.label(), one.value()});
  for (const v1::Bucket& bucket : metric.buckets()) found.buckets.push_back({bucket.below(), bucket.count()});
  return found;
}

Cost to_cost(const v1::Cost& cost) {
  return {.lane_cpu = Seconds(cost.lane_cpu_seconds()),
          .fetch_cpu = Seconds(cost.fetch_cpu_seconds()),
          .control_cpu = Seconds(cost.control_cpu_seconds()),
          .process_cpu = Seconds(cost.process_cpu_seconds()),
          .from_files = Bytes{cost.file_bytes()},
          .from_kept = Bytes{cost.kept_bytes()},
          .images = cost.images(),
          .tensors = Bytes{cost.tensor_bytes()},
          .memory_byte_seconds = cost.memory_byte_seconds(),
          .saved_lanes = Seconds(cost.saved_lane_seconds()),
          .waited = Seconds(cost.waited_seconds())};
}

SessionStatistics to_session(const v1::SessionStatistics& session) {
  SessionStatistics found{.id = session.session_id(),
                          .name = session.name(),
                          .uid = session.uid(),
                          .pid = session.pid(),
                          .slots = session.slots(),
                          .slots_free = session.slots_free(),
                          .slots_not_ready = session.slots_not_ready(),
                          .slots_withdrawn = session.slots_withdrawn(),
                          .segment = Bytes{session.segment_bytes()},
                          .batches = session.batches(),
                          .samples = session.samples(),
                          .bad_samples = session.bad_samples(),
                          .lanes = Seconds(session.lane_seconds()),
                          .age = Seconds(session.seconds()),
                          .waits_told = session.waits_told(),
                          .job = session.job()};
  for (const v1::StateTime& state : session.states())
    found.states.push_back({state.state(), Seconds(state.seconds()), Seconds(state.waited_seconds())});
  if (session.has_cost()) found.cost = to_cost(session.cost());
  for (const v1::StageTime& stage : session.making()) found.making.push_back({stage.stage(), Seconds(stage.seconds())});
  return found;
}

Finding to_finding(const v1::Finding& finding) {
  Finding found{.code = finding.code(),
                .share = finding.share(),
                .text = finding.text(),
                .advice = finding.advice(),
                .images_per_second = finding.images_per_second()};
  for (const v1::Figure& figure : finding.figures())
    found.figures.push_back({figure.name(), figure.unit(), figure.value()});
  found.paths.assign(finding.paths().begin(), finding.paths().end());
  return found;
}

History to_history(const v1::History& history) {
  return {.step = Seconds(history.step_seconds()),
          .images_per_second = {history.images_per_second().begin(), history.images_per_second().end()},
          .waited = {history.waited().begin(), history.waited().end()}};
}

}  // namespace

Statistics to_statistics(const v1::GetStatisticsReply& reply) {
  Statistics statistics{.daemon_version = reply.daemon_version(),
                        .pid = reply.pid(),
                        .uptime = Seconds(reply.uptime_seconds()),
                        .settings_file = reply.settings_file(),
                        .roots = {reply.roots().begin(), reply.roots().end()},
                        .missing_roots = {reply.missing_roots().begin(), reply.missing_roots().end()},
                        .indexes_not_kept = reply.indexes_not_kept(),
                        .cpu = Seconds(reply.cpu_seconds())};
  for (const v1::Metric& metric : reply.metrics()) statistics.metrics.push_back(to_metric(metric));
  for (const v1::SessionStatistics& session : reply.sessions()) statistics.sessions.push_back(to_session(session));
  for (const v1::JobStatistics& job : reply.jobs())
    statistics.jobs.push_back({job.name(), job.uid(), job.sessions(), job.open(), to_cost(job.cost())});
  for (const v1::UserStatistics& user : reply.users()) statistics.users.push_back({user.uid(), to_cost(user.cost())});
  if (reply.has_own()) statistics.own = to_cost(reply.own());
  return statistics;
}

std::vector<SessionFindings> to_findings(const v1::ExplainReply& reply) {
  std::vector<SessionFindings> all;
  for (const v1::SessionFindings& session : reply.sessions()) {
    SessionFindings& found = all.emplace_back(SessionFindings{.id = session.session_id(),
                                                              .name = session.name(),
                                                              .uid = session.uid(),
                                                              .job = session.job(),
                                                              .time = Seconds(session.seconds()),
                                                              .images_per_second = session.images_per_second(),
                                                              .waited = session.waited(),
                                                              .waits_told = session.waits_told(),
                                                              .history = to_history(session.history())});
    for (const v1::Finding& finding : session.findings()) found.findings.push_back(to_finding(finding));
  }
  return all;
}

}  // namespace client
}  // namespace millrace
