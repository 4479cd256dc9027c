#include "daemon/pipeline/pipeline.h"

#include <algorithm>

#include "daemon/model/stopping.h"
#include "daemon/pipeline/state.h"
#include "proto/base/printable.h"

namespace millrace {
namespace {

constexpr std::size_t kLongestName = 300;  // bytes of a file's in the log

std::vector<BackendState> placeable(const std::vector<Pipeline::NamedBackend>& backends) {
  std::vector<BackendState> states;
  for (const Pipeline::NamedBackend& named : backends)
    states.push_back(BackendState{named.name, named.backend->info().formats, named.backend->lost(), named.by_pin_only});
  return states;
}

}  // namespace

Pipeline::State::State(boost::asio::io_context& control_, Fetcher& fetcher_, std::vector<NamedBackend> backends_,
                       Counters& counters_, Options options_)
    : control(control_),
      fetcher(fetcher_),
      counters(counters_),
      options(std::move(options_)),
      placer(placeable(backends_)) {
  const boost::asio::steady_timer first(control_);  // the context takes what timers need while there are descriptors
  std::uint32_t sum = 0;
  for (NamedBackend& named : backends_) {
    if (!named.by_pin_only) sum += named.backend->info().lanes;
    backend_names.push_back(named.name);
    std::vector<MemoryId> memories = named.backend->info().memories;
    backends.push_back(BackendRun{std::move(named.name), std::move(named.backend), std::move(memories), {}, 0});
  }
  lanes = std::max(1U, sum);
}

SessionRun* Pipeline::State::find(SessionId session) {
  const auto found = sessions.find(raw(session));
  return found == sessions.end() ? nullptr : &found->second;
}

void Pipeline::State::note_time(const BatchRun& batch, std::uint32_t index, std::string_view verb,
                                std::chrono::microseconds took) {
  if (options.slow.count() == 0 || took <= options.slow) return;
  slow_line.warn("slow: " + std::string(verb) + ' ' +
                 printable(source_name(batch.request.samples[index].source), kLongestName) + " took " +
                 std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(took).count()) +
                 " ms, for session " + std::to_string(raw(batch.session)));
}

std::uint32_t Pipeline::State::portion(const BatchRun& batch) const {
  return std::clamp(batch.count() / (lanes * 4), 1U, 16U);
}

Pipeline::Pipeline(boost::asio::io_context& control, Fetcher& fetcher, std::vector<NamedBackend> backends,
                   Counters& counters, Options options)
    : state_(std::make_unique<State>(control, fetcher, std::move(backends), counters, std::move(options))) {}

Pipeline::~Pipeline() {
  state_->planner.stop();
  state_->planner.join();
  for (State::BackendRun& run : state_->backends) run.backend->shutdown();
}

void Pipeline::open_session(SessionId session, SessionParts parts) {
  SessionRun run;
  run.parts = std::move(parts);
  state_->sessions.emplace(raw(session), std::move(run));
}

Result<void> Pipeline::submit(SessionId session, BatchRequest request) {
  return state_->admit(session, std::move(request));
}

void Pipeline::cancel(SessionId session, BatchId batch) {
  SessionRun* run = state_->find(session);
  if (run == nullptr) return;
  const auto wanted = [&](const BatchPtr& candidate) { return !candidate->epoch && candidate->request.id == batch; };
  const auto active = std::find_if(run->active.begin(), run->active.end(), wanted);
  const auto waiting = std::find_if(run->waiting.begin(), run->waiting.end(), wanted);
  const Error cancelled{Code::kCancelled, "cancelled by the client"};
  if (active != run->active.end()) {
    state_->fail(BatchPtr(*active), cancelled);
  } else if (waiting != run->waiting.end()) {
    state_->fail(BatchPtr(*waiting), cancelled);
  }
}

Result<void> Pipeline::release(SessionId session, std::uint32_t slot_untrusted, std::uint64_t generation_untrusted) {
  SessionRun* run = state_->find(session);
  if (run == nullptr) return Error{Code::kPrecondition, "the session is closed"};
  MILLRACE_TRY_VOID(run->parts.slots->release(slot_untrusted, generation_untrusted));
  state_->begin_waiting(session);
  return {};
}

void Pipeline::slots_changed(SessionId session) {
  state_->slots_changed(session);
}

void Pipeline::start_epoch(SessionId session, EpochRequest request) {
  state_->start_epoch(session, std::move(request));
}

void Pipeline::stop_epoch(SessionId session, EpochStreamId stream) {
  SessionRun* run = state_->find(session);
  if (run == nullptr) return;
  if (const auto planned = run->planning.find(stream); planned != run->planning.end())
    planned->second = PlannedEpoch::kStopped;
  for (const auto& epoch : run->epochs) {
    if (epoch->id() == stream) epoch->stop();
  }
  const std::vector<BatchPtr> active = run->active;
  for (const BatchPtr& batch : active) {
    if (batch->epoch && batch->epoch->stream == stream)
      state_->fail(batch, Error{Code::kCancelled, "the epoch was stopped"});
  }
  state_->retire_epochs(session);
}

void Pipeline::close_session(SessionId session) {
  const auto found = state_->sessions.find(raw(session));
  if (found == state_->sessions.end()) return;
  SessionRun run = std::move(found->second);
  state_->sessions.erase(found);  // from here on nothing reaches its sink or its slots
  for (const BatchPtr& batch : run.waiting) state_->fail(batch, Error{Code::kCancelled, "the session was closed"});
  for (const BatchPtr& batch : run.active) state_->fail(batch, Error{Code::kCancelled, "the session was closed"});
}

void Pipeline::drain(std::function<void()> idle) {
  state_->draining = true;
  state_->idle = std::move(idle);
  std::vector<SessionId> ids;
  for (const auto& [id, run] : state_->sessions) ids.push_back(SessionId{id});
  for (const SessionId id : ids) {
    const std::deque<BatchPtr> waiting = state_->find(id)->waiting;
    for (const BatchPtr& batch : waiting) state_->fail(batch, stopping());
    for (const auto& epoch : state_->find(id)->epochs) epoch->interrupt(stopping());
    state_->retire_epochs(id);
  }
  state_->check_idle();
}

std::vector<BackendInfo> Pipeline::backends() const {
  std::vector<BackendInfo> infos;
  for (const State::BackendRun& run : state_->backends) infos.push_back(run.backend->info());
  return infos;
}

bool Pipeline::backend_lost(std::size_t index) const {
  return state_->backends[index].backend->lost();
}

}  // namespace millrace
