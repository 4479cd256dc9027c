#include "client/cli/web/statistics_page.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "client/cli/web/families.h"
#include "client/cli/web/process_figures.h"
#include "millrace/client.h"

namespace millrace::cli {
namespace {

constexpr std::string_view kOther = "other";

using Samples = std::map<std::vector<std::string>, double>;  // by the values of labels: what has the same ones adds up

FamilyKind kind_of(v1::MetricKind kind) {
  if (kind == v1::METRIC_KIND_COUNTER) return FamilyKind::kCounter;
  return kind == v1::METRIC_KIND_HISTOGRAM ? FamilyKind::kHistogram : FamilyKind::kGauge;
}

void expose(const v1::Metric& metric, Exposition& page) {
  page.family({metric.name(), kind_of(metric.kind()), metric.unit(), metric.help()});
  if (metric.kind() == v1::METRIC_KIND_HISTOGRAM) {
    std::vector<Exposition::Bucket> buckets;
    for (const v1::Bucket& bucket : metric.buckets()) buckets.push_back({bucket.below(), bucket.count()});
    page.histogram(buckets, metric.sum(), static_cast<std::uint64_t>(metric.value()));
  } else if (metric.values().empty() || !is_metric_name(metric.label())) {
    page.sample(metric.value());
  } else {
    for (const v1::LabelledValue& one : metric.values()) page.sample(one.value(), {{metric.label(), one.label()}});
  }
}

// The daemon's table. What is no name, or comes twice, is left out: others' parsers refuse a whole page for it.
void expose_table(const v1::GetStatisticsReply& statistics, Exposition& page) {
  std::set<std::string> seen;
  for (const WebFamilyRow& row : web_family_table()) seen.emplace(row.family.name);
  for (const v1::Metric& metric : statistics.metrics())
    if (is_metric_name(metric.name()) && seen.insert(metric.name()).second) expose(metric, page);
}

std::vector<std::string_view> split(std::string_view names) {
  std::vector<std::string_view> parts;
  while (!names.empty()) {
    const std::size_t at = std::min(names.find(','), names.size());
    parts.push_back(names.substr(0, at));
    names.remove_prefix(std::min(at + 1, names.size()));
  }
  return parts;
}

void expose(WebFamily id, const Samples& samples, Exposition& page) {
  const WebFamilyRow& row = web_family_table()[static_cast<std::size_t>(id)];
  const std::vector<std::string_view> names = split(row.labels);
  page.family(row.family);
  for (const auto& [values, value] : samples) {
    Exposition::Labels labels;
    for (std::size_t i = 0; i < names.size(); ++i) labels.push_back({names[i], values[i]});
    page.sample(value, labels);
  }
}

// The one sample of a family without labels.
void expose(WebFamily id, double value, Exposition& page) {
  expose(id, Samples{{{}, value}}, page);
}

// What is not told by labels of its own.
std::vector<std::string> as_other(std::vector<std::string> labels) {
  std::fill(labels.begin(), labels.end(), std::string(kOther));
  return labels;
}

// One family of those of all `items`. `key`: the first labels of an item. `fill`: adds the item's samples, whose labels
// begin with its key.
template <class Items, class Key, class Fill>
void expose_each(WebFamily id, const Items& items, const Key& key, const Fill& fill, Exposition& page) {
  Samples samples;
  for (const auto& item : items) fill(item, key(item), samples);
  expose(id, samples, page);
}

std::vector<std::string> with(std::vector<std::string> labels, const std::string& further) {
  labels.push_back(further);
  return labels;
}

void expose_sessions(const v1::GetStatisticsReply& statistics, const LabelPlaces& places, Exposition& page) {
  using Session = v1::SessionStatistics;
  std::vector<Session> sessions(statistics.sessions().begin(), statistics.sessions().end());
  const auto labelled = [&](const Session& one, std::vector<std::string> labels) {
    return places.has(one) ? std::move(labels) : as_other(std::move(labels));
  };
  if (places.has_ended()) sessions.push_back(places.ended());
  const auto key = [&](const Session& one) { return labelled(one, {std::to_string(one.session_id())}); };
  const auto each = [&](WebFamily id, auto figure) {
    expose_each(
        id, sessions, key,
        [&](const Session& one, const std::vector<std::string>& labels, Samples& samples) {
          samples[labels] += static_cast<double>((one.*figure)());
        },
        page);
  };
  const auto by_state = [&](WebFamily id, auto figure) {
    expose_each(
        id, sessions, key,
        [&](const Session& one, const std::vector<std::string>& labels, Samples& samples) {
          for (const v1::StateTime& state : one.states()) samples[with(labels, state.state())] += (state.*figure)();
        },
        page);
  };
  expose_each(
      WebFamily::session_info, sessions,
      [&](const Session& one) {
        return labelled(one, {std::to_string(one.session_id()), one.name(), one.job(), std::to_string(one.uid()),
                              std::to_string(one.pid())});
      },
      [](const Session&, const std::vector<std::string>& labels, Samples& samples) { samples[labels] = 1; }, page);
  each(WebFamily::session_age, &Session::seconds);
  each(WebFamily::session_slots, &Session::slots);
  each(WebFamily::session_slots_free, &Session::slots_free);
  each(WebFamily::session_slots_not_ready, &Session::slots_not_ready);
  each(WebFamily::session_slots_withdrawn, &Session::slots_withdrawn);
  each(WebFamily::session_segment, &Session::segment_bytes);
  each(WebFamily::session_batches, &Session::batches);
  each(WebFamily::session_samples, &Session::samples);
  each(WebFamily::session_bad_samples, &Session::bad_samples);
  each(WebFamily::session_lanes, &Session::lane_seconds);
  each(WebFamily::session_waits_told, &Session::waits_told);
  by_state(WebFamily::session_state, &v1::StateTime::seconds);
  by_state(WebFamily::session_waited, &v1::StateTime::waited_seconds);
  expose_each(
      WebFamily::session_making, sessions, key,
      [](const Session& one, const std::vector<std::string>& labels, Samples& samples) {
        for (const v1::StageTime& stage : one.making()) samples[with(labels, stage.stage())] += stage.seconds();
      },
      page);
}

void add_cpu(const v1::Cost& cost, const std::vector<std::string>& labels, Samples& samples) {
  samples[with(labels, "lane")] += cost.lane_cpu_seconds();
  samples[with(labels, "fetch")] += cost.fetch_cpu_seconds();
  samples[with(labels, "control")] += cost.control_cpu_seconds();
  samples[with(labels, "process")] += cost.process_cpu_seconds();
}

// The families of MILLRACE_COST_FAMILIES, of which `first` is the first one.
template <class Items, class Key>
void expose_costs(WebFamily first, const Items& items, const Key& key, Exposition& page) {
  using Item = typename Items::value_type;
  using Labels = std::vector<std::string>;
  std::uint32_t id = static_cast<std::uint32_t>(first);
  const auto next = [&](auto fill) { expose_each(static_cast<WebFamily>(id++), items, key, fill, page); };
  const auto each = [&](auto figure) {
    next([figure](const Item& one, const Labels& labels, Samples& samples) {
      samples[labels] += static_cast<double>((one.cost().*figure)());
    });
  };
  next([](const Item& one, const Labels& labels, Samples& samples) { add_cpu(one.cost(), labels, samples); });
  each(&v1::Cost::file_bytes);
  each(&v1::Cost::kept_bytes);
  each(&v1::Cost::images);
  each(&v1::Cost::tensor_bytes);
  each(&v1::Cost::memory_byte_seconds);
  each(&v1::Cost::saved_lane_seconds);
  each(&v1::Cost::waited_seconds);
}

void expose_jobs(const v1::GetStatisticsReply& statistics, const LabelPlaces& places, Exposition& page) {
  const auto key = [&](const v1::JobStatistics& job) {
    std::vector<std::string> labels{job.name(), std::to_string(job.uid())};
    return places.has(job) ? labels : as_other(labels);
  };
  const auto each = [&](WebFamily id, auto figure) {
    expose_each(
        id, statistics.jobs(), key,
        [&](const v1::JobStatistics& job, const std::vector<std::string>& labels, Samples& samples) {
          samples[labels] += static_cast<double>((job.*figure)());
        },
        page);
  };
  each(WebFamily::job_sessions, &v1::JobStatistics::open);
  each(WebFamily::job_opened, &v1::JobStatistics::sessions);
  expose_costs(WebFamily::job_cpu, statistics.jobs(), key, page);
  expose_costs(
      WebFamily::user_cpu, statistics.users(),
      [&](const v1::UserStatistics& user) {
        return std::vector<std::string>{places.has(user) ? std::to_string(user.uid()) : std::string(kOther)};
      },
      page);
  Samples own;
  add_cpu(statistics.own(), {}, own);
  expose(WebFamily::own_cpu, own, page);
  expose(WebFamily::own_file_bytes, static_cast<double>(statistics.own().file_bytes()), page);
}

}  // namespace

std::string statistics_page(const v1::GetStatisticsReply* statistics_untrusted, const LabelPlaces& places,
                            const WebFigures& web, Exposition::Form form) {
  Exposition page(form);
  expose(WebFamily::up, statistics_untrusted != nullptr ? 1 : 0, page);
  if (statistics_untrusted != nullptr) {
    const v1::GetStatisticsReply& statistics = *statistics_untrusted;
    expose(WebFamily::build, Samples{{{statistics.daemon_version(), library_version()}, 1}}, page);
    expose(WebFamily::uptime, statistics.uptime_seconds(), page);
    expose(WebFamily::cpu, statistics.cpu_seconds(), page);
    expose_table(statistics, page);
    expose_sessions(statistics, places, page);
    expose_jobs(statistics, places, page);
    expose(process_figures(statistics.pid(), std::chrono::duration<double>(statistics.uptime_seconds())), page);
  }
  expose(WebFamily::web_connections, static_cast<double>(web.connections), page);
  expose(WebFamily::web_requests, static_cast<double>(web.requests), page);
  expose(WebFamily::web_evicted, static_cast<double>(web.evicted), page);
  expose(WebFamily::web_asks, static_cast<double>(web.asks), page);
  return std::move(page).text();
}

}  // namespace millrace::cli
