#include "daemon/pipeline/making.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <span>
#include <thread>
#include <utility>

#include "daemon/observe/log.h"
#include "daemon/pipeline/recorded.h"
#include "proto/base/start_thread.h"

namespace millrace {
namespace {

std::vector<Placeable> placeable(const std::vector<NamedBackend>& backends) {
  std::vector<Placeable> all;
  for (const NamedBackend& named : backends)
    all.push_back(Placeable{named.name, named.backend.get(), named.by_pin_only});
  return all;
}

}  // namespace

Making::Making(boost::asio::io_context& control, std::vector<NamedBackend> backends, const Ledger& ledger,
               const UserShares& shares, ControlTime& time, SlowImages& slow, Counters& counters, Next& next)
    : control_(control),
      time_(time),
      slow_(slow),
      counters_(counters),
      next_(next),
      placer_(placeable(backends)),
      scheduler_(placer_, ledger, shares, time) {
  for (NamedBackend& named : backends) {
    named.backend->listen([this, i = backends_.size()](const Health& health) {
      boost::asio::post(control_, [this, i, health] { health_changed(i, health); });
    });
    const LabelValue label = counters.value_of(MetricId::samples_completed, named.name),
                     left = counters.value_of(MetricId::samples_left, named.name);
    counters.add(MetricId::devices, named.name);
    counters.add(MetricId::devices_lost, counters.value_of(MetricId::devices_lost, named.name), 0);
    BackendInfo info = named.backend->info();
    if (info.instruction_sets.empty()) devices_ |= 1U << names_.size();
    names_.push_back(std::move(named.name));
    scheduler_.add_backend(named.backend->queue_depth(), info.copies_files);
    backends_.push_back(BackendRun{std::move(named.backend), std::move(info.memories), label, left});
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
    Result<Placer::Chosen> chosen = placer_.place(facts, *request.recipe, request.backend, sample.tried);
    if (!chosen) {
      // What the last backend said about it tells more than that none is left.
      batch->give_up(task.index, sample.error ? *sample.error : chosen.error());
      continue;
    }
    if (const Result<void> possible = scheduler_.check(task); !possible) {
      batch->give_up(task.index, possible.error());
      continue;
    }
    if (!chosen->passed_over.empty() && sample.tried == 0) {
      batch->session().parts.left->tell(batch->session().id, names_[chosen->backend], chosen->passed_over);
      batch->session().parts.signs->note_left(chosen->passed_over);
    }
    batch->choose(task.index, chosen->backend);
    scheduler_.add(chosen->backend, batch, std::move(task));
  }
  for (std::size_t i = 0; i < backends_.size(); ++i) feed(i);
}

void Making::feed(std::size_t index) {
  while (std::optional<LaneScheduler::Turn> next = scheduler_.next(index))
    if (!give(*std::move(next))) break;
  for (const BatchPtr& batch : scheduler_.take_newly_deferred()) next_.moved(*batch);
}

void Making::feed_deferred() {
  while (std::optional<LaneScheduler::Turn> next = scheduler_.next_deferred())
    if (!give(*std::move(next))) return;
}

// false: the backend has no room.
bool Making::give(LaneScheduler::Turn next) {
  const BatchPtr batch = next.batch.batch();
  const auto working = time_.work_for(batch->owner().user, batch->costs());
  if (next.is_to_be_made) return submit(std::move(next));
  if (next.late) next_.fail(batch, *next.late);
  give_back(std::move(next));
  return true;
}

bool Making::submit(LaneScheduler::Turn next) {
  const std::size_t index = next.backend;
  const BatchPtr batch = next.batch.batch();
  batch->make(next.tasks);
  for (SampleTask& task : next.tasks) batch->direct(task, backends_[index].memories);
  const std::uint32_t number = scheduler_.begin(next);
  const auto use = std::make_shared<JobUse>();
  DecodeJob job{.tasks = std::move(next.tasks),
                .recipe = batch->request().recipe,
                .fidelity = batch->request().fidelity,
                .pinned = !batch->request().backend.empty(),
                .owner = batch->owner(),
                .stop = batch->stop(),
                .turn = LaneScheduler::kTurn,
                .urgent = next.urgent,
                .use = use,
                .keep_alive = batch,
                .done = [this, index, number, use](std::vector<SampleTask> done, std::vector<SampleOutcome> outcomes) {
                  boost::asio::post(control_, [this, index, number, use, done = std::move(done),
                                               outcomes = std::move(outcomes)]() mutable {
                    made(index, number, std::move(done), std::move(outcomes), *use);
                  });
                }};
  if (backends_[index].backend->try_submit(std::move(job))) {
    scheduler_.taken(number, std::move(next));
    record_jobs(names_[index], scheduler_.jobs(index));
    next_.moved(*batch);
    return true;
  }
  batch->not_taken(job.tasks);
  scheduler_.not_taken(number, std::move(next), std::move(job.tasks));
  return false;
}

// Nobody wants them any more, or they go elsewhere: as if the backend had given them back.
void Making::give_back(LaneScheduler::Turn next) {
  const std::size_t index = next.backend;
  const BatchPtr& batch = next.batch.batch();
  const Error why = batch->running()
                        ? Error{Code::kUnavailable, "the device is lost (" + placer_.lost(index).value_or("") + ")"}
                        : Error{Code::kCancelled, "stopped"};
  batch->make(next.tasks);
  std::vector<SampleOutcome> outcomes;
  for (const SampleTask& task : next.tasks) outcomes.push_back(SampleOutcome{.index = task.index, .error = why});
  const std::uint32_t number = scheduler_.begin(next);
  boost::asio::post(control_,
                    [this, index, number, tasks = std::move(next.tasks), outcomes = std::move(outcomes)]() mutable {
                      made(index, number, std::move(tasks), std::move(outcomes), {});
                    });
}

// What waits for a lost backend goes elsewhere, whether or not it has a job that will come back.
void Making::health_changed(std::size_t index, const Health& health) {
  const bool was_lost = lost(index), is_lost = health.state == Health::State::kLost;
  placer_.set_health(index, health);
  const LabelValue name = counters_.value_of(MetricId::devices_lost, names_[index]);
  if (is_lost && !was_lost) counters_.add(MetricId::devices_lost, name);
  if (was_lost && !is_lost) counters_.subtract(MetricId::devices_lost, name);
  if (is_lost) {
    log_error("backend " + names_[index] + " has lost its device: " + health.why + "; what it had goes to the others");
  } else {
    log_info("backend " + names_[index] + " has its device back");
  }
  feed_deferred();
  feed(index);
}

void Making::made(std::size_t index, std::uint32_t number, std::vector<SampleTask> tasks,
                  std::vector<SampleOutcome> outcomes, const JobUse& use) {
  MILLRACE_CHECK(tasks.size() == outcomes.size());
  const BatchPtr batch = scheduler_.ended(index, number, outcomes);
  record_jobs(names_[index], scheduler_.jobs(index));
  const auto working = time_.work_for(batch->owner().user, batch->costs());
  note_use(*batch, index, outcomes, use);
  std::vector<SampleTask> again;
  for (std::size_t i = 0; i < tasks.size(); ++i) note_outcome(*batch, std::move(tasks[i]), outcomes[i], again);
  if (!again.empty()) add(batch, std::move(again));
  if (batch->running() && batch->count(SampleState::kUnread) > 0) next_.must_be_read(batch);
  next_.moved(*batch);
  next_.came_back(batch);
  feed_deferred();
  feed(index);
  feed_deferred();  // of what else was ready there may be nothing left
  next_.bytes_let_go();
}

// Devices' times are on the wall, and not the session's alone.
void Making::note_use(const Batch& batch, std::size_t index, std::span<const SampleOutcome> outcomes,
                      const JobUse& use) {
  SessionCosts& costs = *batch.costs();
  std::chrono::nanoseconds decode{0}, on_lanes{0};
  std::uint64_t made = 0;
  for (const SampleOutcome& outcome : outcomes) {
    decode += outcome.decode;
    on_lanes += outcome.decode + outcome.transform;
    made += outcome.error || outcome.not_begun ? 0 : 1;
  }
  costs.add({.lane_cpu = use.lane_cpu, .process_cpu = use.process_cpu, .images = made});
  costs.saved(use.saved);
  const bool is_device = (devices_ >> index & 1U) != 0;
  if (is_device) return;
  costs.made(on_lanes, use.stages);
  batch.session().parts.signs->decode += decode;
  lane_time_ += on_lanes;
}

void Making::note_outcome(Batch& batch, SampleTask task, const SampleOutcome& outcome, std::vector<SampleTask>& again) {
  if (outcome.not_begun && batch.running()) {
    batch.not_taken(std::span(&task, 1));
    return again.push_back(std::move(task));
  }
  batch.note_making(task.index, outcome);
  slow_.note(batch, task.index, "making", outcome.decode + outcome.transform);
  SessionSigns& signs = *batch.session().parts.signs;
  if (!outcome.not_begun)
    signs.making.note(outcome.decode + outcome.transform, [&] { return batch.name_of(task.index); });
  counters_.add(MetricId::queue_time, outcome.queued);
  counters_.add(MetricId::decode_time, outcome.decode);
  counters_.add(MetricId::transform_time, outcome.transform);
  if (outcome.not_begun) return batch.give_up(task.index, Error{Code::kCancelled, "stopped"});
  if (!outcome.error) {
    counters_.add(HistogramId::decode_latency, outcome.decode);
    counters_.add(MetricId::samples_completed, backends_[batch.sample(task.index).backend].label);
    ++signs.made;
    return batch.made(task.index);
  }
  if (outcome.read_again && batch.running()) return batch.read_again(task.index);
  const bool elsewhere = outcome.error->code == Code::kUnavailable || outcome.error->code == Code::kUnsupported;
  if (!elsewhere || !batch.running()) return batch.give_up(task.index, *outcome.error);
  const std::size_t by = batch.sample(task.index).backend;
  counters_.add(MetricId::samples_left, backends_[by].left);
  const std::string why = names_[by] + ": " + outcome.error->message;
  batch.session().parts.left->tell(batch.session().id, "others", why);
  signs.note_left(why);
  batch.try_elsewhere(task.index, *outcome.error);
  again.push_back(std::move(task));
}

void Making::drop(const BatchPtr& batch) {
  for (LaneScheduler::Turn& picture : scheduler_.drop(batch)) give_back(std::move(picture));
}

}  // namespace millrace
