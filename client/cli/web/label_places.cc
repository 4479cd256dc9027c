#include "client/cli/web/label_places.h"

#include <algorithm>
#include <string_view>

namespace millrace::cli {
namespace {

constexpr std::string_view kRest = "other";  // of a user's jobs
constexpr std::uint32_t kRestOfUsers = ~0U;  // likewise

// The one called `name` among times by name; a new one where there is none.
template <class Times, class Name, class SetName>
auto& named(Times& times, std::string_view wanted, Name name, SetName set_name) {
  for (auto& one : times)
    if ((one.*name)() == wanted) return one;
  auto& made = *times.Add();
  set_name(made);
  return made;
}

// What only grows. Gauges are of those that are there.
void add_counters(const v1::SessionStatistics& from, v1::SessionStatistics& to) {
  to.set_batches(to.batches() + from.batches());
  to.set_samples(to.samples() + from.samples());
  to.set_bad_samples(to.bad_samples() + from.bad_samples());
  to.set_lane_seconds(to.lane_seconds() + from.lane_seconds());
  to.set_waits_told(to.waits_told() + from.waits_told());
  for (const v1::StateTime& state : from.states()) {
    v1::StateTime& sum = named(*to.mutable_states(), state.state(), &v1::StateTime::state,
                               [&](v1::StateTime& made) { made.set_state(state.state()); });
    sum.set_seconds(sum.seconds() + state.seconds());
    sum.set_waited_seconds(sum.waited_seconds() + state.waited_seconds());
  }
  for (const v1::StageTime& stage : from.making()) {
    v1::StageTime& sum = named(*to.mutable_making(), stage.stage(), &v1::StageTime::stage,
                               [&](v1::StageTime& made) { made.set_stage(stage.stage()); });
    sum.set_seconds(sum.seconds() + stage.seconds());
  }
}

}  // namespace

void LabelPlaces::look(const v1::GetStatisticsReply& statistics) {
  if (statistics.pid() != pid_ || statistics.uptime_seconds() < uptime_) *this = {};
  pid_ = statistics.pid();
  uptime_ = statistics.uptime_seconds();
  look_at_sessions(statistics);
  std::vector<decltype(jobs_)::Seen> jobs;
  for (const v1::JobStatistics& job : statistics.jobs())
    jobs.push_back({{job.name(), job.uid()}, job.open() == 0, job.name() == kRest || job.uid() == kRestOfUsers});
  jobs_.look(jobs);
  std::vector<decltype(users_)::Seen> users;
  for (const v1::UserStatistics& user : statistics.users())
    users.push_back({.key = user.uid(), .is_rest = user.uid() == kRestOfUsers});
  users_.look(users);
}

void LabelPlaces::look_at_sessions(const v1::GetStatisticsReply& statistics) {
  std::vector<decltype(sessions_)::Seen> seen;
  for (const v1::SessionStatistics& session : statistics.sessions()) seen.push_back({.key = session.session_id()});
  std::ranges::sort(seen, {}, &decltype(sessions_)::Seen::key);  // the oldest first
  sessions_.look(seen);
  std::map<std::uint64_t, v1::SessionStatistics> others;
  for (const v1::SessionStatistics& session : statistics.sessions())
    if (!has(session)) others[session.session_id()] = session;
  for (const auto& [id, last] : others_) {
    if (others.contains(id)) continue;
    add_counters(last, ended_);
    has_ended_ = true;
  }
  others_ = std::move(others);
}

}  // namespace millrace::cli
