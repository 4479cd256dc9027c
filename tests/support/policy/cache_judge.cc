#include "tests/support/policy/cache_judge.h"

#include <algorithm>
#include <cmath>
#include <list>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <unordered_map>
#include <utility>

#include "daemon/cache/policy/use_table.h"
#include "daemon/plan/epoch_order.h"

namespace millrace::test {
namespace {

EpochOrderSpec spec_of(const JudgedDataset& dataset, const JudgedJob& job, std::uint32_t epoch) {
  return {.samples = dataset.samples, .seed = job.seed, .epoch = epoch, .shuffle = job.shuffle};
}

EpochOrder order_of(const EpochOrderSpec& spec) {
  Result<EpochOrder> order = EpochOrder::create(spec);
  MILLRACE_CHECK(order.has_value());
  return *std::move(order);
}

Dataset made_up(std::uint32_t number, std::uint32_t samples) {
  return Dataset("/made/up", "", std::vector<Dataset::Entry>(samples), {}, number, {}, {}, DatasetNumber{number + 1});
}

}  // namespace

CacheJudge::CacheJudge(const std::vector<JudgedDataset>& datasets, const std::vector<JudgedJob>& jobs,
                       const std::vector<JudgedServer>& servers)
    : datasets_(datasets), jobs_(jobs) {
  std::mt19937_64 random(1);
  std::vector<std::uint32_t> first;
  for (std::uint32_t d = 0; d < datasets.size(); ++d) {
    const JudgedDataset& dataset = datasets[d];
    first.push_back(static_cast<std::uint32_t>(things_.size()));
    const Dataset listed = made_up(d, dataset.samples);
    const double mean = static_cast<double>(dataset.least_bytes + dataset.most_bytes) / 2;
    std::uniform_int_distribution<std::int64_t> bytes(dataset.least_bytes, dataset.most_bytes);
    for (std::uint32_t sample = 0; sample < dataset.samples; ++sample) {
      const std::int64_t size = bytes(random);
      const double share = static_cast<double>(size) / mean;
      things_.push_back({size, dataset.saves * share, dataset.costs * share});
      members_.push_back(member_of(listed, SampleId{sample}));
    }
  }
  for (std::uint32_t j = 0; j < jobs.size(); ++j) {
    const JudgedJob& job = jobs[j];
    double time = job.begin;
    for (std::uint32_t epoch = 0; epoch < job.epochs; ++epoch) {
      const EpochOrder order = order_of(spec_of(datasets[job.dataset], job, epoch));
      for (std::uint64_t i = 0; i < order.batches(); ++i) {
        const auto sample = static_cast<std::uint32_t>(raw(order.batch(i).front()));
        touches_.push_back({time, j, epoch, first[job.dataset] + sample, i});
        time += 1 / job.speed;
      }
    }
  }
  for (const JudgedServer& server : servers) {
    const auto begin = static_cast<std::uint32_t>(things_.size());
    std::vector<double> weights(server.files);
    for (std::uint32_t i = 0; i < server.files; ++i) {
      weights[i] = std::pow(i + 1, -server.exponent);
      things_.push_back({1, server.saves, server.costs});
      members_.push_back({DatasetNumber::kNone, static_cast<std::uint32_t>(random()), 0});
    }
    std::mt19937_64 draws(server.seed);
    std::discrete_distribution<std::uint32_t> which(weights.begin(), weights.end());
    for (double time = 0; time < server.seconds; time += 1 / server.speed)
      touches_.push_back({time, static_cast<std::uint32_t>(jobs.size()), 0, begin + which(draws), 0});
  }
  std::stable_sort(touches_.begin(), touches_.end(), [](const Touch& a, const Touch& b) { return a.time < b.time; });
}

// `kept(touch)`: whether it was a hit, and if not, whether the thing was made.
template <typename Kept>
Judged CacheJudge::play(Kept&& kept) const {
  Judged judged{.touches = touches_.size()};
  for (const Touch& touch : touches_) {
    const auto [hit, made] = kept(touch);
    judged.hits += hit ? 1 : 0;
    judged.made += made ? 1 : 0;
    judged.seconds += (hit ? things_[touch.thing].saves : 0) - (made ? things_[touch.thing].costs : 0);
  }
  return judged;
}

Judged CacheJudge::policy(std::int64_t bytes, Knowing knowing) const {
  Policy policy({.budget = Bytes{static_cast<std::uint64_t>(bytes)}});
  UseTable table;
  std::vector<std::unique_ptr<DatasetUse>> uses(jobs_.size());
  std::vector<std::uint64_t> left(jobs_.size());
  const auto begin_epoch = [&](const Touch& touch) {
    const JudgedJob& job = jobs_[touch.job];
    const JudgedDataset& dataset = datasets_[job.dataset];
    const EpochOrderSpec spec = spec_of(dataset, job, touch.epoch);
    if (!uses[touch.job]) uses[touch.job] = table.begin(made_up(job.dataset, dataset.samples));
    EpochBegun epoch{.order = spec, .samples = dataset.samples};
    if (knowing == Knowing::kOrders) {
      epoch.positions = std::make_shared<const EpochPositions>(order_of(spec).positions());
      const EpochOrderSpec next = spec_of(dataset, job, touch.epoch + 1);
      epoch.next = std::make_shared<const EpochPositions>(order_of(next).positions());
    }
    uses[touch.job]->epoch_begun(std::move(epoch), touch.time);
  };
  std::unordered_map<std::uint32_t, Policy::Ticket> tickets;
  std::vector<std::uint32_t> things;  // by ticket
  std::vector<Policy::Ticket> gone;
  return play([&](const Touch& touch) {
    const bool of_job = touch.job < jobs_.size() && knowing != Knowing::kNothing;
    if (of_job && touch.position == 0) begin_epoch(touch);
    if (of_job) uses[touch.job]->reached(touch.position + 1);
    const std::shared_ptr<const ReuseForecast> forecast = table.forecast();
    const DatasetMember& member = members_[touch.thing];
    policy.asked(member, *forecast, touch.time);
    const bool hit = tickets.contains(touch.thing);
    bool made = false;
    if (hit) policy.accessed(tickets.at(touch.thing), member);
    const FlowThing& thing = things_[touch.thing];
    const Policy::Piece piece{.member = member,
                              .kind = CachedKind::kPacked,
                              .bytes = static_cast<std::uint32_t>(thing.bytes),
                              .saves = static_cast<float>(thing.saves),
                              .costs = static_cast<float>(thing.costs)};
    if (!hit && policy.worth_making(piece, *forecast, touch.time)) {
      made = true;
      gone.clear();
      const std::optional<Policy::Ticket> ticket = policy.admit(piece, *forecast, touch.time, gone);
      for (const Policy::Ticket other : gone) tickets.erase(things[other]);
      if (ticket) {
        things.resize(std::max<std::size_t>(things.size(), *ticket + 1));
        things[*ticket] = touch.thing;
        tickets[touch.thing] = *ticket;
      }
    }
    const bool last = of_job && touch.epoch + 1 == jobs_[touch.job].epochs &&
                      touch.position + 1 == datasets_[jobs_[touch.job].dataset].samples;
    if (last) uses[touch.job].reset();
    return std::pair(hit, made);
  });
}

Judged CacheJudge::least_recently_used(std::int64_t bytes) const {
  std::list<std::uint32_t> recent;
  std::unordered_map<std::uint32_t, std::list<std::uint32_t>::iterator> kept;
  std::int64_t used = 0;
  return play([&](const Touch& touch) {
    const auto found = kept.find(touch.thing);
    if (found != kept.end()) {
      recent.splice(recent.begin(), recent, found->second);
      return std::pair(true, false);
    }
    recent.push_front(touch.thing);
    kept.emplace(touch.thing, recent.begin());
    used += things_[touch.thing].bytes;
    while (used > bytes) {
      used -= things_[recent.back()].bytes;
      kept.erase(recent.back());
      recent.pop_back();
    }
    return std::pair(false, true);
  });
}

Judged CacheJudge::two_generations(std::int64_t bytes) const {
  std::unordered_map<std::uint32_t, bool> young, old;
  std::int64_t used = 0;  // by the young ones
  const auto put = [&](std::uint32_t thing) {
    if (used + things_[thing].bytes > bytes / 2) {
      old = std::move(young);
      young.clear();
      used = 0;
    }
    young.emplace(thing, true);
    used += things_[thing].bytes;
  };
  return play([&](const Touch& touch) {
    if (young.contains(touch.thing)) return std::pair(true, false);
    const bool hit = old.erase(touch.thing) > 0;
    put(touch.thing);
    return std::pair(hit, !hit);
  });
}

Judged CacheJudge::first_come(std::int64_t bytes) const {
  std::unordered_map<std::uint32_t, bool> kept;
  std::int64_t used = 0;
  return play([&](const Touch& touch) {
    if (kept.contains(touch.thing)) return std::pair(true, false);
    if (used + things_[touch.thing].bytes > bytes) return std::pair(false, false);
    used += things_[touch.thing].bytes;
    kept.emplace(touch.thing, true);
    return std::pair(false, true);
  });
}

Judged CacheJudge::fixed(std::int64_t bytes) const {
  std::vector<double> worth(things_.size(), 0);
  for (const Touch& touch : touches_) worth[touch.thing] += things_[touch.thing].saves;
  for (std::size_t i = 0; i < worth.size(); ++i)
    worth[i] = (worth[i] - things_[i].saves - things_[i].costs) / static_cast<double>(things_[i].bytes);
  std::vector<std::uint32_t> best(things_.size());
  std::iota(best.begin(), best.end(), 0U);
  std::stable_sort(best.begin(), best.end(), [&](std::uint32_t a, std::uint32_t b) { return worth[a] > worth[b]; });
  std::unordered_map<std::uint32_t, bool> made;  // false: it may be
  for (const std::uint32_t thing : best) {
    bytes -= things_[thing].bytes;
    if (bytes < 0 || worth[thing] <= 0) break;
    made.emplace(thing, false);
  }
  return play([&](const Touch& touch) {
    const auto found = made.find(touch.thing);
    if (found == made.end()) return std::pair(false, false);
    return std::pair(std::exchange(found->second, true), !found->second);
  });
}

double CacheJudge::best(std::int64_t bytes, MakeAt make) const {
  std::vector<std::uint32_t> touches;
  for (const Touch& touch : touches_) touches.push_back(touch.thing);
  return best_saving(things_, touches, bytes, make);
}

}  // namespace millrace::test
