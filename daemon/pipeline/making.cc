#include "daemon/pipeline/making.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>
#include <span>
#include <thread>
#include <utility>

#include "daemon/observe/log.h"
#include "daemon/pipeline/batch/deadline.h"
#include "proto/base/start_thread.h"

namespace millrace {
namespace {

// What a lane has at once of one user before it is somebody else's turn, but for a single image.
constexpr std::chrono::milliseconds kTurn{100};
constexpr std::uint64_t kLong = std::chrono::nanoseconds(kTurn).count();

std::vector<Placeable> placeable(const std::vector<NamedBackend>& backends) {
  std::vector<Placeable> all;
  for (const NamedBackend& named : backends)
    all.push_back(Placeable{named.name, named.backend.get(), named.by_pin_only});
  return all;
}

// What somebody waits for, and one job can make. An epoch of priority high would only break others' jobs.
bool is_urgent(const Batch& batch, const QueueDepth& queue_depth) {
  return batch.request().priority == Priority::kHigh && batch.count() <= queue_depth.most;
}

}  // namespace

Making::Making(boost::asio::io_context& control, std::vector<NamedBackend> backends, const Ledger& ledger,
               const UserShares& shares, ControlTime& time, SlowImages& slow, Counters& counters, Next& next)
    : control_(control),
      shares_(shares),
      time_(time),
      slow_(slow),
      counters_(counters),
      next_(next),
      large_(ledger, shares),
      placer_(placeable(backends)) {
  for (NamedBackend& named : backends) {
    const QueueDepth queue_depth = named.backend->queue_depth();
    named.backend->listen([this, i = backends_.size()](const Health& health) {
      boost::asio::post(control_, [this, i, health] { health_changed(i, health); });
    });
    const LabelValue label = counters.value_of(MetricId::samples_completed, named.name);
    names_.push_back(std::move(named.name));
    BackendInfo info = named.backend->info();
    backends_.push_back(BackendRun{std::move(named.backend),
                                   std::move(info.memories),
                                   info.copies_files,
                                   queue_depth,
                                   label,
                                   FairQueue<InFlight>(shares),
                                   {},
                                   {}});
  }
}

// Side by side: a backend whose device hangs takes seconds, and a host may have many.
Making::~Making() {
  std::vector<std::thread> ending;
  for (BackendRun& run : backends_) {
    Result<std::thread> thread = start_thread("mr-end", [&backend = *run.backend] { backend.shutdown(); });
    if (thread)
      ending.push_back(*std::move(thread));
    else
      run.backend->shutdown();
  }
  for (std::thread& thread : ending) thread.join();
}

std::vector<BackendInfo> Making::infos() const {
  std::vector<BackendInfo> infos;
  for (const BackendRun& run : backends_) infos.push_back(run.backend->info());
  return infos;
}

std::vector<TensorMemory*> Making::memories() const {
  std::vector<TensorMemory*> memories;
  for (const BackendRun& run : backends_)
    if (TensorMemory* const memory = run.backend->memory()) memories.push_back(memory);
  return memories;
}

void Making::add(const BatchPtr& batch, std::vector<SampleTask> tasks) {
  for (SampleTask& task : tasks) {
    const SampleRun& sample = batch->sample(task.index);
    const BatchRequest& request = batch->request();
    const SampleFacts facts{task.image.info, task.geometry, request.fidelity, kind_kept(task.image),
                            !request.backend.empty()};
    const Result<std::size_t> chosen = placer_.place(facts, *request.recipe, request.backend, sample.tried);
    if (!chosen) {
      // What the last backend said about it tells more than that none is left.
      batch->give_up(task.index, sample.error ? *sample.error : chosen.error());
      continue;
    }
    if (const Result<void> possible = large_.check(task); !possible) {
      batch->give_up(task.index, possible.error());
      continue;
    }
    batch->choose(task.index, *chosen);
    ReadySamples& ready = batch->ready[*chosen];
    if (ready.empty())  // a batch that has some waits already
      backends_[*chosen].ready.push(batch->owner(), batch->request().priority, InFlight(batch));
    ready.add(std::move(task));
  }
  for (std::size_t i = 0; i < backends_.size(); ++i) feed(i);
}

void Making::feed(std::size_t index) {
  BackendRun& run = backends_[index];
  const auto may = [&](const InFlight& next) {
    const Batch& batch = *next.batch();
    if (!batch.running() || placer_.lost(index)) return true;
    const bool is_full = run.jobs.size() >= run.queue_depth.jobs;
    return (!is_full || is_urgent(batch, run.queue_depth)) &&
           has_lane_for(run, batch.owner().user, batch.ready[index].costliest());
  };
  const auto has_room = [&] {
    const auto urgent = [&](const InFlight& next) { return is_urgent(*next.batch(), run.queue_depth); };
    if (run.jobs.size() < run.queue_depth.jobs) return true;
    return run.jobs.size() < run.queue_depth.jobs + run.queue_depth.urgent && run.ready.any_first(urgent);
  };
  while (placer_.lost(index) || has_room()) {  // a lost one keeps nothing waiting
    charge_control_time();
    std::optional<InFlight> next = run.ready.take(may);
    if (!next) return;
    const BatchPtr batch = next->batch();
    const auto working = time_.work_for(batch->owner().user);
    ReadySamples& ready = batch->ready[index];
    if (batch->running()) shed_if_late(run, batch, ready);
    if (!batch->running() || placer_.lost(index)) {
      give_back(index, *std::move(next), ready.take(batch->count()));
      continue;
    }
    JobOut out{.batch = InFlight(batch)};
    std::vector<SampleTask> tasks = take_ready(index, batch, out.decoding);
    const bool taken = tasks.empty() || submit(index, out, tasks);  // empty: all were deferred
    for (SampleTask& task : tasks) ready.add(std::move(task));
    if (!ready.empty()) run.ready.put_back(batch->owner(), batch->request().priority, *std::move(next));
    if (!taken) return;
  }
}

void Making::charge_control_time() {
  time_.take(ControlTime::Stage::kMaking, [&](UserId user, std::uint64_t nanoseconds) {
    for (BackendRun& run : backends_) run.ready.charge(user, nanoseconds);
  });
}

// REQUIRES: the caller has an InFlight of it. Half of what is expected is taken for the least: better late than wrongly
// given up. And what is expected was learnt of what he had made: after one batch is given up the next is begun, if none of
// his is being made, for else nothing would be learnt any more.
void Making::shed_if_late(BackendRun& run, const BatchPtr& batch, const ReadySamples& ready) {
  if (is_late(*batch)) return next_.fail(batch, deadline_passed(*batch));
  const UserId user = batch->owner().user;
  const std::uint64_t expected = ratio_of(run, user).scaled(ready.cost());
  const std::chrono::nanoseconds least(expected / run.queue_depth.at_once / 2);
  if (!is_unbegun(*batch) || !is_late(*batch, least)) return;
  Learnt& learnt = run.learnt[user];
  const auto his = [&](const JobOut& out) { return out.batch.batch()->owner().user == user; };
  if (!learnt.has_come_back && run.jobs.count_if(his) == 0) return;
  learnt.has_come_back = false;
  next_.fail(batch, deadline_out_of_reach(least));
}

const CostRatio& Making::ratio_of(const BackendRun& run, UserId user) const {
  static const CostRatio kUnknown;
  const auto found = run.learnt.find(user);
  return found == run.learnt.end() ? kUnknown : found->second.ratio;
}

// Of one lane nobody can be given half: there a long job holds what there is.
bool Making::has_lane_for(const BackendRun& run, UserId user, std::uint64_t expected) const {
  if (ratio_of(run, user).scaled(expected) <= kLong || !shares_.has_others(user)) return true;
  std::uint32_t all = 0, his = 0;
  run.jobs.for_each([&](const JobOut& out) {
    all += out.is_long ? 1 : 0;
    his += out.is_long && out.batch.batch()->owner().user == user ? 1 : 0;
  });
  const std::uint32_t lanes = run.queue_depth.at_once;
  return his < std::max(1U, lanes / 2) && all < std::max(1U, lanes - 1);
}

// The batch's next samples, charged for together.
std::vector<SampleTask> Making::take_ready(std::size_t index, const BatchPtr& batch, Charge& charge) {
  ReadySamples& ready = batch->ready[index];
  const std::uint32_t waiting = ready.size() + batch->not_read();
  std::vector<SampleTask> tasks;
  const std::uint64_t most_cost = ratio_of(backends_[index], batch->owner().user).unscaled(kLong);
  for (SampleTask& task : ready.take(samples_a_job(batch->count(), waiting, backends_[index].queue_depth), most_cost)) {
    const Bytes beside{backends_[index].copies_files ? task.image.bytes.size() : 0};
    if (large_.cover(task, *batch->session().parts.account, charge, beside)) {
      tasks.push_back(std::move(task));
    } else {
      batch->defer(task.index);
      large_.defer({InFlight(batch), index, std::move(task), beside});
    }
  }
  return tasks;
}

// false: the backend has no room; `out` and `tasks` are then left as they were.
bool Making::submit(std::size_t index, JobOut& out, std::vector<SampleTask>& tasks) {
  BackendRun& run = backends_[index];
  const BatchPtr batch = out.batch.batch();
  batch->make(tasks);
  for (SampleTask& task : tasks) batch->direct(task, run.memories);
  out.expected = expected_cost(tasks);
  const std::uint64_t charged = ratio_of(run, batch->owner().user).scaled(out.expected);
  out.is_long = charged > kLong;
  const std::uint32_t number = run.jobs.add(std::move(out));
  DecodeJob job{.tasks = std::move(tasks),
                .recipe = batch->request().recipe,
                .fidelity = batch->request().fidelity,
                .pinned = !batch->request().backend.empty(),
                .stop = batch->stop(),
                .turn = kTurn,
                .urgent = is_urgent(*batch, run.queue_depth),
                .keep_alive = batch,
                .done = [this, index, number](std::vector<SampleTask> done, std::vector<SampleOutcome> outcomes) {
                  boost::asio::post(control_, [this, index, number, done = std::move(done),
                                               outcomes = std::move(outcomes)]() mutable {
                    made(index, number, std::move(done), std::move(outcomes));
                  });
                }};
  tasks.clear();
  if (run.backend->try_submit(std::move(job))) {
    JobOut& given = run.jobs.at(number);
    given.turn = run.ready.charge(batch->owner(), batch->request().priority, charged);
    if (given.had_to_wait) given.large_turn = large_.charge_turn(*batch, charged);
    return true;
  }
  tasks = std::move(job.tasks);
  batch->not_taken(tasks);
  out = run.jobs.take(number);
  return false;
}

std::chrono::milliseconds Making::overdue(std::chrono::milliseconds image_limit) const {
  std::chrono::milliseconds longest{0};
  for (const BackendRun& run : backends_)
    longest = std::max(longest, run.jobs.still_for() - image_limit * run.queue_depth.most);
  return longest;
}

// Nobody wants them any more, or they go elsewhere: as if the backend had given them back.
void Making::give_back(std::size_t index, InFlight batch, std::vector<SampleTask> tasks) {
  const Error why = batch.batch()->running()
                        ? Error{Code::kUnavailable, "the device is lost (" + placer_.lost(index).value_or("") + ")"}
                        : Error{Code::kCancelled, "stopped"};
  batch.batch()->make(tasks);
  std::vector<SampleOutcome> outcomes;
  for (const SampleTask& task : tasks) outcomes.push_back(SampleOutcome{.index = task.index, .error = why});
  const std::uint32_t number = backends_[index].jobs.add(JobOut{.batch = std::move(batch)});
  boost::asio::post(control_,
                    [this, index, number, tasks = std::move(tasks), outcomes = std::move(outcomes)]() mutable {
                      made(index, number, std::move(tasks), std::move(outcomes));
                    });
}

// What waits for a lost backend goes elsewhere, whether or not it has a job that will come back.
void Making::health_changed(std::size_t index, const Health& health) {
  placer_.set_health(index, health);
  if (health.state == Health::State::kLost) {
    log_error("backend " + names_[index] + " has lost its device: " + health.why + "; what it had goes to the others");
  } else {
    log_info("backend " + names_[index] + " has its device back");
  }
  feed_deferred();
  feed(index);
}

void Making::made(std::size_t index, std::uint32_t number, std::vector<SampleTask> tasks,
                  std::vector<SampleOutcome> outcomes) {
  BackendRun& run = backends_[index];
  MILLRACE_CHECK(tasks.size() == outcomes.size());
  const BatchPtr batch = [&] {  // the job's charge and its right to call back go here
    const JobOut out = run.jobs.take(number);
    charge_what_it_took(run, out, outcomes);
    return out.batch.batch();
  }();
  const auto working = time_.work_for(batch->owner().user);
  std::vector<SampleTask> again;
  for (std::size_t i = 0; i < tasks.size(); ++i) note_outcome(*batch, std::move(tasks[i]), outcomes[i], again);
  if (!again.empty()) add(batch, std::move(again));
  if (batch->running() && batch->count(SampleState::kUnread) > 0) next_.must_be_read(batch);
  next_.came_back(batch);
  feed_deferred();
  feed(index);
  feed_deferred();  // of what else was ready there may be nothing left
  next_.bytes_let_go();
}

// Not what was expected: a user who has odd files pays for them. Of what failed or was too late as well.
void Making::charge_what_it_took(BackendRun& run, const JobOut& out, const std::vector<SampleOutcome>& outcomes) {
  if (out.expected == 0) return;  // no backend has had it
  std::chrono::nanoseconds took{0};
  for (const SampleOutcome& outcome : outcomes) took += outcome.decode + outcome.transform;
  const auto actual = static_cast<std::uint64_t>(took.count());
  const Batch& batch = *out.batch.batch();
  run.ready.correct(batch.owner(), batch.request().priority, out.turn, actual);
  if (out.had_to_wait) large_.correct_turn(batch, out.large_turn, actual);
  const auto was_made = [](const SampleOutcome& outcome) { return !outcome.error && !outcome.not_begun; };
  const bool tells = std::all_of(outcomes.begin(), outcomes.end(), was_made) || actual > out.turn.cost;
  if (!shares_.is_here(batch.owner().user)) return;
  Learnt& learnt = run.learnt[batch.owner().user];
  learnt.has_come_back = true;
  if (tells) learnt.ratio.learn(out.expected, actual);
}

void Making::left(UserId user) {
  for (BackendRun& run : backends_) run.learnt.erase(user);
}

void Making::note_outcome(Batch& batch, SampleTask task, const SampleOutcome& outcome, std::vector<SampleTask>& again) {
  if (outcome.not_begun && batch.running()) {
    batch.not_taken(std::span(&task, 1));
    return again.push_back(std::move(task));
  }
  batch.note_making(task.index, outcome);
  slow_.note(batch, task.index, "making", outcome.decode + outcome.transform);
  batch.session().parts.work->lanes += outcome.decode + outcome.transform;
  counters_.add(MetricId::queue_time, outcome.queued);
  counters_.add(MetricId::decode_time, outcome.decode);
  counters_.add(MetricId::transform_time, outcome.transform);
  if (outcome.not_begun) return batch.give_up(task.index, Error{Code::kCancelled, "stopped"});
  if (!outcome.error) {
    counters_.add(HistogramId::decode_latency, outcome.decode);
    counters_.add(MetricId::samples_completed, backends_[batch.sample(task.index).backend].label);
    return batch.made(task.index);
  }
  if (outcome.read_again && batch.running()) return batch.read_again(task.index);
  const bool elsewhere = outcome.error->code == Code::kUnavailable || outcome.error->code == Code::kUnsupported;
  if (!elsewhere || !batch.running()) return batch.give_up(task.index, *outcome.error);
  batch.try_elsewhere(task.index, *outcome.error);
  again.push_back(std::move(task));
}

// Whose turn it is of those that waited for memory, each when its user is due; null: nobody's.
const LargePictures::Deferred* Making::next_deferred() {
  const auto unwanted = [&](const LargePictures::Deferred& picture) {
    return !picture.batch.batch()->running() || placer_.lost(picture.backend);
  };
  const auto has_lane = [&](const LargePictures::Deferred& picture) {
    return unwanted(picture) ||
           has_lane_for(backends_[picture.backend], picture.batch.batch()->owner().user, expected_cost(picture.task));
  };
  const auto is_due = [&](const LargePictures::Deferred& picture) {
    return unwanted(picture) || backends_[picture.backend].ready.is_due(picture.batch.batch()->owner().user);
  };
  const auto may_begin = [&](const LargePictures::Deferred& picture) { return is_due(picture) && has_lane(picture); };
  while (const LargePictures::Deferred* next = large_.next(may_begin, has_lane)) {
    if (!unwanted(*next)) return is_due(*next) ? next : nullptr;
    drop(large_.take_next());
  }
  return nullptr;
}

// Where other samples are ready, on half the lanes at most.
void Making::feed_deferred() {
  while (const LargePictures::Deferred* next = next_deferred()) {
    BackendRun& run = backends_[next->backend];
    if (run.jobs.size() >= run.queue_depth.jobs) return;
    const auto waited = [](const JobOut& out) { return out.had_to_wait; };
    if (!run.ready.empty() && run.jobs.count_if(waited) >= std::max(1U, run.queue_depth.at_once / 2)) return;
    std::optional<Charge> decoding = large_.charge_next();
    if (!decoding) return;
    JobOut out{.batch = InFlight(next->batch.batch()), .decoding = *std::move(decoding), .had_to_wait = true};
    LargePictures::Deferred picture = large_.take_next();
    std::vector<SampleTask> tasks;
    tasks.push_back(std::move(picture.task));
    if (submit(picture.backend, out, tasks)) continue;
    picture.task = std::move(tasks.front());
    out.batch.batch()->defer(picture.task.index);
    return large_.put_back_next(std::move(picture));
  }
}

void Making::drop(LargePictures::Deferred picture) {
  std::vector<SampleTask> tasks;
  tasks.push_back(std::move(picture.task));
  give_back(picture.backend, std::move(picture.batch), std::move(tasks));
}

void Making::drop(const BatchPtr& batch) {
  for (LargePictures::Deferred& picture : large_.drop(*batch)) drop(std::move(picture));
}

}  // namespace millrace
