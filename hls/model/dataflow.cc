#include "hls/model/dataflow.h"

#include <algorithm>
#include <utility>

namespace millrace::hls::model {

std::size_t Dataflow::add_fifo(std::string name, std::int64_t capacity, bool refilled) {
  fifos_.push_back({.name = std::move(name), .capacity = capacity, .refilled = refilled, .entries = {}});
  return fifos_.size() - 1;
}

std::size_t Dataflow::add_stage(StageSpec spec) {
  const std::size_t stage = stages_.size();
  for (const Queue& queue : spec.queues) {
    fifos_[queue.in].behind = stage;
    if (queue.out != kNone) fifos_[queue.out].before = stage;
  }
  stages_.push_back({.spec = std::move(spec), .use = {}});
  return stage;
}

void Dataflow::push(std::size_t fifo, Token token) {
  fifos_[fifo].entries.push_back({token, now_, 0});
  if (fifos_[fifo].behind != kNone) look(fifos_[fifo].behind);
}

void Dataflow::set_timer(Clocks when, std::size_t which) {
  schedule(when, Event::What::kTimer, which);
}

Clocks Dataflow::run(Work& work) {
  for (std::size_t i = 0; i < stages_.size(); ++i) look(i);
  settle(work);
  while (!events_.empty()) {
    const Event event = events_.top();
    events_.pop();
    now_ = event.when;
    if (event.what == Event::What::kEnd) {
      end(event.which, work);
    } else if (event.what == Event::What::kWake) {
      stages_[event.which].wake = -1;
      look(event.which);
    } else {
      work.timer(event.which, now_);
    }
    settle(work);
  }
  return now_;
}

StageUse Dataflow::use_of(std::size_t stage) const {
  Stage copy = stages_[stage];
  const Clocks passed = now_ - copy.since;
  if (copy.state == State::kBusy) copy.use.busy += passed;
  if (copy.state == State::kStarved) copy.use.starved += passed;
  if (copy.state == State::kOutputFull) copy.use.output_full += passed;
  return copy.use;
}

void Dataflow::enter(Stage& stage, State state) {
  if (stage.state == state) return;
  const Clocks passed = now_ - stage.since;
  if (stage.state == State::kBusy) stage.use.busy += passed;
  if (stage.state == State::kStarved) stage.use.starved += passed;
  if (stage.state == State::kOutputFull) stage.use.output_full += passed;
  stage.state = state;
  stage.since = now_;
}

void Dataflow::look(std::size_t stage) {
  looks_.push_back(stage);
}

void Dataflow::settle(Work& work) {
  while (!looks_.empty()) {
    const std::size_t stage = looks_.back();
    looks_.pop_back();
    try_begin(stage, work);
  }
}

void Dataflow::try_begin(std::size_t index, Work& work) {
  Stage& stage = stages_[index];
  if (stage.state == State::kBusy) return;
  const std::size_t queues = stage.spec.queues.size();
  bool is_full = false;
  Clocks soonest = -1;
  for (std::size_t i = 0; i < queues; ++i) {
    const std::size_t queue = (stage.next + i) % queues;
    const Fifo& in = fifos_[stage.spec.queues[queue].in];
    if (in.entries.empty()) continue;
    const Entry& head = in.entries.front();
    if (head.visible > now_) {
      soonest = soonest < 0 ? head.visible : std::min(soonest, head.visible);
      continue;
    }
    const Emission emission = work.emission(stage.spec.kind, head.token);
    const std::size_t out = stage.spec.queues[queue].out;
    if (out != kNone && emission.takes > 0 && fifos_[out].used > 0 &&
        fifos_[out].used + emission.takes > fifos_[out].capacity) {
      is_full = true;
      continue;
    }
    begin(index, queue, emission, work);
    return;
  }
  enter(stage, is_full ? State::kOutputFull : State::kStarved);
  if (soonest >= 0 && (stage.wake < 0 || soonest < stage.wake)) {
    stage.wake = soonest;
    schedule(soonest, Event::What::kWake, index);
  }
}

void Dataflow::begin(std::size_t index, std::size_t queue, Emission emission, Work& work) {
  Stage& stage = stages_[index];
  const Queue ends = stage.spec.queues[queue];
  Fifo& in = fifos_[ends.in];
  stage.current = in.entries.front();
  in.entries.pop_front();
  stage.serving = queue;
  stage.next = queue + 1;
  ++stage.use.tokens;
  enter(stage, State::kBusy);
  const Clocks done = now_ + work.clocks(stage.spec.kind, stage.current.token);
  if (ends.out != kNone) {
    Fifo& out = fifos_[ends.out];
    out.used += emission.takes;
    out.most = std::max(out.most, out.used);
    if (emission.delivers) {
      out.entries.push_back({stage.current.token, done + stage.spec.latency, emission.holds});
      if (out.behind != kNone) look(out.behind);
    }
  }
  schedule(done, Event::What::kEnd, index);
  if (in.refilled && in.entries.empty()) work.emptied(ends.in, now_);
}

void Dataflow::end(std::size_t index, Work& work) {
  Stage& stage = stages_[index];
  Fifo& in = fifos_[stage.spec.queues[stage.serving].in];
  in.used -= stage.current.holds;
  if (stage.current.holds > 0 && in.before != kNone) look(in.before);
  enter(stage, State::kStarved);  // try_begin() says at once whether it is
  if (stage.spec.tells) work.finished(stage.spec.kind, stage.serving, stage.current.token, now_);
  look(index);
}

void Dataflow::schedule(Clocks when, Event::What what, std::size_t which) {
  events_.push({when, number_++, what, which});
}

}  // namespace millrace::hls::model
