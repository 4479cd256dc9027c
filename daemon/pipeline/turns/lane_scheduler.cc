#include "daemon/pipeline/turns/lane_scheduler.h"

#include <algorithm>
#include <utility>

#include "daemon/pipeline/batch/deadline.h"

namespace millrace {
namespace {

constexpr std::uint64_t kLong = std::chrono::nanoseconds(LaneScheduler::kTurn).count();

// What somebody waits for, and one job can make. An epoch of priority high would only break others' jobs.
bool is_urgent(const Batch& batch, const QueueDepth& queue_depth) {
  return batch.request().priority == Priority::kHigh && batch.count() <= queue_depth.most;
}

}  // namespace

void LaneScheduler::add_backend(const QueueDepth& queue_depth, bool copies_files) {
  lanes_.push_back(Lanes{queue_depth, copies_files, FairQueue<InFlight>(shares_)});
}

void LaneScheduler::add(std::size_t backend, const BatchPtr& batch, SampleTask task) {
  ReadySamples& ready = batch->ready[backend];
  if (ready.empty())  // a batch that has some waits already
    lanes_[backend].ready.push(batch->owner(), batch->request().priority, InFlight(batch));
  ready.add(std::move(task));
}

std::optional<LaneScheduler::Turn> LaneScheduler::next(std::size_t backend) {
  Lanes& lanes = lanes_[backend];
  while (placer_.lost(backend) || has_room(lanes)) {  // a lost one keeps nothing waiting
    charge_control_time();
    std::optional<InFlight> first = take_first(backend);
    if (!first) return std::nullopt;
    const BatchPtr batch = first->batch();
    const auto working = time_.work_for(batch->owner().user, batch->costs());
    ReadySamples& ready = batch->ready[backend];
    Turn turn{.batch = *std::move(first), .backend = backend, .tasks = {}};
    if (batch->running()) turn.late = why_late(lanes, *batch, ready);
    if (!batch->running() || turn.late || placer_.lost(backend)) {
      turn.is_to_be_made = false;
      turn.tasks = ready.take(batch->count());
      return turn;
    }
    compose(turn);
    if (!turn.tasks.empty()) return turn;
    put_back(std::move(turn));  // all were deferred
  }
  return std::nullopt;
}

// An urgent job has a place when all others are taken.
bool LaneScheduler::has_room(const Lanes& lanes) const {
  const auto urgent = [&](const InFlight& waiting) { return is_urgent(*waiting.batch(), lanes.queue_depth); };
  if (lanes.jobs.size() < lanes.queue_depth.jobs) return true;
  return lanes.jobs.size() < lanes.queue_depth.jobs + lanes.queue_depth.urgent && lanes.ready.any_first(urgent);
}

std::optional<InFlight> LaneScheduler::take_first(std::size_t backend) {
  Lanes& lanes = lanes_[backend];
  return lanes.ready.take([&](const InFlight& waiting) {
    const Batch& batch = *waiting.batch();
    if (!batch.running() || placer_.lost(backend)) return true;
    const bool is_full = lanes.jobs.size() >= lanes.queue_depth.jobs;
    return (!is_full || is_urgent(batch, lanes.queue_depth)) &&
           has_lane_for(lanes, batch.owner().user, batch.ready[backend].costliest());
  });
}

// Half of what is expected is taken for the least: better late than wrongly given up. And what is expected was learnt of
// what he had made: after one batch is given up the next is begun, if none of his is being made, for else nothing would
// be learnt any more.
std::optional<Error> LaneScheduler::why_late(Lanes& lanes, const Batch& batch, const ReadySamples& ready) {
  if (is_late(batch)) return deadline_passed(batch);
  const UserId user = batch.owner().user;
  const std::uint64_t expected = ratio_of(lanes, user).scaled(ready.cost());
  const std::chrono::nanoseconds least(expected / lanes.queue_depth.at_once / 2);
  if (!is_unbegun(batch) || !is_late(batch, least)) return std::nullopt;
  Learnt& learnt = lanes.learnt[user];
  const auto his = [&](const JobOut& out) { return out.batch.batch()->owner().user == user; };
  if (!learnt.has_come_back && lanes.jobs.count_if(his) == 0) return std::nullopt;
  learnt.has_come_back = false;
  return deadline_out_of_reach(least);
}

const CostRatio& LaneScheduler::ratio_of(const Lanes& lanes, UserId user) const {
  static const CostRatio kUnknown;
  const auto found = lanes.learnt.find(user);
  return found == lanes.learnt.end() ? kUnknown : found->second.ratio;
}

std::uint64_t LaneScheduler::charge_of(const Lanes& lanes, const Batch& batch, std::uint64_t expected) const {
  return ratio_of(lanes, batch.owner().user).scaled(expected);
}

// Of one lane nobody can be given half: there a long job holds what there is.
bool LaneScheduler::has_lane_for(const Lanes& lanes, UserId user, std::uint64_t expected) const {
  if (ratio_of(lanes, user).scaled(expected) <= kLong || !shares_.has_others(user)) return true;
  std::uint32_t all = 0, his = 0;
  lanes.jobs.for_each([&](const JobOut& out) {
    all += out.is_long ? 1 : 0;
    his += out.is_long && out.batch.batch()->owner().user == user ? 1 : 0;
  });
  const std::uint32_t at_once = lanes.queue_depth.at_once;
  return his < std::max(1U, at_once / 2) && all < std::max(1U, at_once - 1);
}

// The batch's next samples, charged for together.
void LaneScheduler::compose(Turn& turn) {
  const Lanes& lanes = lanes_[turn.backend];
  const BatchPtr& batch = turn.batch.batch();
  turn.urgent = is_urgent(*batch, lanes.queue_depth);
  ReadySamples& ready = batch->ready[turn.backend];
  const std::uint32_t waiting = ready.size() + batch->not_read();
  const std::uint64_t most_cost = ratio_of(lanes, batch->owner().user).unscaled(kLong);
  for (SampleTask& task : ready.take(samples_a_job(batch->count(), waiting, lanes.queue_depth), most_cost)) {
    const Bytes beside{lanes.copies_files ? task.image.bytes.size() : 0};
    if (large_.cover(task, *batch->session().parts.account, turn.decoding, beside)) {
      turn.tasks.push_back(std::move(task));
    } else {
      batch->defer(task.index);
      if (newly_deferred_.empty() || newly_deferred_.back() != batch) newly_deferred_.push_back(batch);
      large_.defer({InFlight(batch), turn.backend, std::move(task), beside});
    }
  }
}

// What is still ready of the batch.
void LaneScheduler::put_back(Turn turn) {
  const BatchPtr batch = turn.batch.batch();
  if (batch->ready[turn.backend].empty()) return;
  lanes_[turn.backend].ready.put_back(batch->owner(), batch->request().priority, std::move(turn.batch));
}

std::uint32_t LaneScheduler::begin(const Turn& turn) {
  Lanes& lanes = lanes_[turn.backend];
  JobOut out{.batch = InFlight(turn.batch.batch()), .decoding = {}, .had_to_wait = turn.had_to_wait};
  if (turn.is_to_be_made) {
    out.expected = expected_cost(turn.tasks);
    out.is_long = charge_of(lanes, *turn.batch.batch(), out.expected) > kLong;
  }
  return lanes.jobs.add(std::move(out));
}

void LaneScheduler::taken(std::uint32_t number, Turn turn) {
  Lanes& lanes = lanes_[turn.backend];
  JobOut& out = lanes.jobs.at(number);
  const Batch& batch = *turn.batch.batch();
  out.decoding = std::move(turn.decoding);
  const std::uint64_t charged = charge_of(lanes, batch, out.expected);
  out.turn = lanes.ready.charge(batch.owner(), batch.request().priority, charged);
  if (out.had_to_wait)
    out.large_turn = large_.charge_turn(batch, charged);
  else
    put_back(std::move(turn));
}

void LaneScheduler::not_taken(std::uint32_t number, Turn turn, std::vector<SampleTask> tasks) {
  static_cast<void>(lanes_[turn.backend].jobs.take(number));
  const BatchPtr batch = turn.batch.batch();
  if (turn.had_to_wait) {
    batch->defer(tasks.front().index);
    return large_.put_back_next({std::move(turn.batch), turn.backend, std::move(tasks.front()), turn.beside});
  }
  for (SampleTask& task : tasks) batch->ready[turn.backend].add(std::move(task));
  put_back(std::move(turn));
}

BatchPtr LaneScheduler::ended(std::size_t backend, std::uint32_t number, std::span<const SampleOutcome> outcomes) {
  Lanes& lanes = lanes_[backend];
  const JobOut out = lanes.jobs.take(number);
  charge_what_it_took(lanes, out, outcomes);
  return out.batch.batch();
}

// Not what was expected: a user who has odd files pays for them. Of what failed or was too late as well.
void LaneScheduler::charge_what_it_took(Lanes& lanes, const JobOut& out, std::span<const SampleOutcome> outcomes) {
  if (out.expected == 0) return;  // no backend has had it
  std::chrono::nanoseconds took{0};
  for (const SampleOutcome& outcome : outcomes) took += outcome.decode + outcome.transform;
  const auto actual = static_cast<std::uint64_t>(took.count());
  const Batch& batch = *out.batch.batch();
  lanes.ready.correct(batch.owner(), batch.request().priority, out.turn, actual);
  if (out.had_to_wait) large_.correct_turn(batch, out.large_turn, actual);
  const auto was_made = [](const SampleOutcome& outcome) { return !outcome.error && !outcome.not_begun; };
  const bool tells = std::all_of(outcomes.begin(), outcomes.end(), was_made) || actual > out.turn.cost;
  if (!shares_.is_here(batch.owner().user)) return;
  Learnt& learnt = lanes.learnt[batch.owner().user];
  learnt.has_come_back = true;
  if (tells) learnt.ratio.learn(out.expected, actual);
}

void LaneScheduler::charge_control_time() {
  time_.take(ControlTime::Stage::kMaking, [&](UserId user, std::uint64_t nanoseconds) {
    for (Lanes& lanes : lanes_) lanes.ready.charge(user, nanoseconds);
  });
}

// Where other samples are ready, on half the lanes at most.
std::optional<LaneScheduler::Turn> LaneScheduler::next_deferred() {
  const LargePictures::Deferred* const due = due_deferred();
  if (due == nullptr) return std::nullopt;
  if (is_unwanted(*due)) return unwanted(large_.take_next());
  Lanes& lanes = lanes_[due->backend];
  if (lanes.jobs.size() >= lanes.queue_depth.jobs) return std::nullopt;
  const auto waited = [](const JobOut& out) { return out.had_to_wait; };
  if (!lanes.ready.empty() && lanes.jobs.count_if(waited) >= std::max(1U, lanes.queue_depth.at_once / 2))
    return std::nullopt;
  std::optional<Charge> decoding = large_.charge_next();
  if (!decoding) return std::nullopt;
  Turn turn = of(large_.take_next());
  turn.decoding = *std::move(decoding);
  turn.had_to_wait = true;
  turn.urgent = is_urgent(*turn.batch.batch(), lanes.queue_depth);
  return turn;
}

// Whose turn it is of those that waited for memory, each when its user is due, and those that nobody wants; null: nobody's.
const LargePictures::Deferred* LaneScheduler::due_deferred() {
  const auto has_lane = [&](const LargePictures::Deferred& picture) {
    return is_unwanted(picture) ||
           has_lane_for(lanes_[picture.backend], picture.batch.batch()->owner().user, expected_cost(picture.task));
  };
  const auto is_due = [&](const LargePictures::Deferred& picture) {
    return is_unwanted(picture) || lanes_[picture.backend].ready.is_due(picture.batch.batch()->owner().user);
  };
  const auto may_begin = [&](const LargePictures::Deferred& picture) { return is_due(picture) && has_lane(picture); };
  const LargePictures::Deferred* const next = large_.next(may_begin, has_lane);
  return next != nullptr && is_due(*next) ? next : nullptr;
}

bool LaneScheduler::is_unwanted(const LargePictures::Deferred& picture) const {
  return !picture.batch.batch()->running() || placer_.lost(picture.backend);
}

LaneScheduler::Turn LaneScheduler::of(LargePictures::Deferred picture) {
  Turn turn{.batch = std::move(picture.batch), .backend = picture.backend, .tasks = {}, .beside = picture.beside};
  turn.tasks.push_back(std::move(picture.task));
  return turn;
}

LaneScheduler::Turn LaneScheduler::unwanted(LargePictures::Deferred picture) {
  Turn turn = of(std::move(picture));
  turn.is_to_be_made = false;
  return turn;
}

std::vector<LaneScheduler::Turn> LaneScheduler::drop(const BatchPtr& batch) {
  std::vector<Turn> dropped;
  for (LargePictures::Deferred& picture : large_.drop(*batch)) dropped.push_back(unwanted(std::move(picture)));
  return dropped;
}

void LaneScheduler::left(UserId user) {
  for (Lanes& lanes : lanes_) lanes.learnt.erase(user);
}

std::chrono::milliseconds LaneScheduler::overdue(std::chrono::milliseconds image_limit) const {
  std::chrono::milliseconds longest{0};
  for (const Lanes& lanes : lanes_)
    longest = std::max(longest, lanes.jobs.still_for() - image_limit * lanes.queue_depth.most);
  return longest;
}

}  // namespace millrace
