#include "daemon/cache/policy/reuse_forecast.h"

#include <algorithm>
#include <utility>

namespace millrace {
namespace {

// Of an epoch that has just begun, its own speed says little: the one before counts as so much of an epoch.
constexpr double kBefore = 0.05;
constexpr double kUnknownSpeed = 500;  // samples a second, of a session that has asked for nothing yet

// Whether there will be another epoch nobody says. One that came twice comes again, many times; the first may be all.
constexpr double kFurtherAtFirst = 2, kFurther = 16;

double speed_of(const ReuseForecast::Session& session, double reached, double now) {
  const double until = session.ended < 0 ? now : session.ended;
  const double done = reached - static_cast<double>(session.first);
  const double before = session.speed_before > 0 ? kBefore * static_cast<double>(session.samples) : 0;
  const double seconds = until - session.begun + (before > 0 ? before / session.speed_before : 0);
  return done + before > 0 && seconds > 0 ? (done + before) / seconds : kUnknownSpeed;
}

// Of a pause that has lasted longer than the one before it nobody knows more than that it may last as long again.
double rest_of_gap(const ReuseForecast::Session& session, double now) {
  if (session.ended < 0) return session.gap;
  const double since = std::max(now - session.ended, 0.0);
  return since < session.gap ? session.gap - since : since;
}

}  // namespace

ReuseForecast::ReuseForecast(std::vector<InUse> datasets) : datasets_(std::move(datasets)) {
  std::sort(datasets_.begin(), datasets_.end(), [](const InUse& a, const InUse& b) { return a.dataset < b.dataset; });
}

const ReuseForecast::InUse* ReuseForecast::find(DatasetNumber dataset) const {
  const auto found = std::lower_bound(datasets_.begin(), datasets_.end(), dataset,
                                      [](const InUse& use, DatasetNumber number) { return use.dataset < number; });
  return found != datasets_.end() && found->dataset == dataset ? &*found : nullptr;
}

ReuseForecast::Moment ReuseForecast::at(DatasetNumber dataset, double now) const {
  Moment moment;
  const InUse* use = find(dataset);
  if (use == nullptr) return moment;
  for (const Session& session : use->sessions) {
    Moment::Ahead ahead{.session = &session};
    ahead.reached = static_cast<double>(session.reached->load(std::memory_order_relaxed));
    ahead.speed = speed_of(session, ahead.reached, now);
    const double samples = static_cast<double>(session.samples);
    const double gap = rest_of_gap(session, now);
    ahead.until_next = (session.ended < 0 ? std::max(samples - ahead.reached, 0.0) / ahead.speed : 0) + gap;
    ahead.cycle = samples / ahead.speed + std::max(session.gap, session.ended < 0 ? 0 : now - session.ended);
    moment.rate_ += 1 / (ahead.cycle * session.world);
    moment.jobs_ += 1.0 / session.world;
    moment.further_ += (session.epochs < 2 ? kFurtherAtFirst : kFurther) / session.world;
    if (moment.count_ < Moment::kMost) moment.ahead_[moment.count_++] = ahead;
  }
  return moment;
}

Expectation ReuseForecast::Moment::expect(std::uint32_t sample, std::uint16_t listing) const {
  Expectation expected{.rate = rate_, .further = further_};
  for (std::size_t i = 0; i < count_; ++i) expected.wait = std::min(expected.wait, wait(ahead_[i], sample, listing));
  return expected;
}

double ReuseForecast::Moment::wait(const Ahead& ahead, std::uint32_t sample, std::uint16_t listing) const {
  const Session& session = *ahead.session;
  const double mean = ahead.cycle * session.world;  // between two accesses of a sample
  if (sample >= session.dataset_samples || listing != session.listing) return mean;
  if (session.now && session.ended < 0) {
    const std::uint64_t position = session.now->of(sample);
    const double mine = static_cast<double>(position / session.world);
    if (position % session.world == session.rank && mine >= ahead.reached) return (mine - ahead.reached) / ahead.speed;
  }
  if (!session.now && !session.next) return mean;
  if (!session.next) return ahead.until_next + mean / 2;
  const std::uint64_t position = session.next->of(sample);
  if (position % session.world != session.rank) return ahead.until_next + ahead.cycle + mean / 2;
  return ahead.until_next + static_cast<double>(position / session.world) / ahead.speed;
}

}  // namespace millrace
