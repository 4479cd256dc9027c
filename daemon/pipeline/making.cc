// Stages 4 and 5 as the pipeline drives them: samples go to backends, come back made, broken, or to be tried elsewhere.
#include <utility>

#include "daemon/pipeline/state.h"

namespace millrace {

void Pipeline::State::enqueue_ready(const BatchPtr& batch, std::vector<SampleTask> tasks) {
  std::vector<Portion> portions(backends.size());
  for (SampleTask& task : tasks) {
    SampleRun& sample = batch->samples[task.index];
    const Result<std::size_t> chosen = placer.place(task.image.info, batch->request.backend, sample.tried);
    if (!chosen) {
      // What the last backend said about it tells more than that none is left.
      const std::uint32_t index = task.index;
      encoded_in_flight -= Bytes{task.image.bytes.size()};
      counters.subtract(MetricId::encoded_in_flight, task.image.bytes.size());
      give_up(*batch, index, sample.error ? *std::exchange(sample.error, std::nullopt) : chosen.error());
      continue;
    }
    sample.error.reset();
    sample.backend = static_cast<std::uint32_t>(*chosen);
    portions[*chosen].tasks.push_back(std::move(task));
  }
  for (std::size_t i = 0; i < portions.size(); ++i) {
    if (portions[i].tasks.empty()) continue;
    portions[i].batch = batch;
    ++batch->outstanding;
    backends[i].ready.push(batch->session, batch->request.priority, std::move(portions[i]));
    feed_backend(i);
  }
}

void Pipeline::State::feed_backend(std::size_t index) {
  BackendRun& run = backends[index];
  while (run.in_it < run.backend->depth()) {
    std::optional<Portion> portion = run.ready.take();
    if (!portion) return;
    const BatchPtr batch = portion->batch;
    if (!batch->running() || run.backend->lost()) {
      // Nobody wants it any more, or it goes elsewhere: as if the backend had given it back.
      std::vector<SampleOutcome> outcomes;
      const Error why =
          batch->running() ? Error{Code::kUnavailable, "the device is lost"} : Error{Code::kCancelled, "stopped"};
      for (const SampleTask& task : portion->tasks)
        outcomes.push_back(SampleOutcome{.index = task.index, .error = why});
      ++run.in_it;
      post([this, index, batch, tasks = std::move(portion->tasks), outcomes = std::move(outcomes)]() mutable {
        made(index, batch, std::move(tasks), std::move(outcomes));
      });
      continue;
    }
    DecodeJob job{.tasks = std::move(portion->tasks),
                  .recipe = batch->request.recipe,
                  .fidelity = batch->request.fidelity,
                  .stop = batch->stop,
                  .keep_alive = batch,
                  .done = [this, index, batch](std::vector<SampleTask> tasks, std::vector<SampleOutcome> outcomes) {
                    post([this, index, batch, tasks = std::move(tasks), outcomes = std::move(outcomes)]() mutable {
                      made(index, batch, std::move(tasks), std::move(outcomes));
                    });
                  }};
    if (!run.backend->try_submit(std::move(job))) {
      portion->tasks = std::move(job.tasks);
      run.ready.put_back(batch->session, batch->request.priority, *std::move(portion));
      return;
    }
    ++run.in_it;
  }
}

void Pipeline::State::made(std::size_t index, const BatchPtr& batch, std::vector<SampleTask> tasks,
                           std::vector<SampleOutcome> outcomes) {
  BackendRun& run = backends[index];
  --run.in_it;
  --batch->outstanding;
  if (run.backend->lost()) placer.set_lost(index);
  MILLRACE_CHECK(tasks.size() == outcomes.size());
  std::vector<SampleTask> again;
  for (std::size_t i = 0; i < tasks.size(); ++i) note_outcome(*batch, index, std::move(tasks[i]), outcomes[i], again);
  if (!again.empty()) enqueue_ready(batch, std::move(again));
  settle(batch);
  feed_backend(index);
  feed_fetch();
}

void Pipeline::State::note_outcome(BatchRun& batch, std::size_t backend, SampleTask task, const SampleOutcome& outcome,
                                   std::vector<SampleTask>& again) {
  SampleRun& sample = batch.samples[task.index];
  sample.queued += outcome.queued;
  sample.decode += outcome.decode;
  sample.transform += outcome.transform;
  counters.add(MetricId::queue_time, static_cast<std::uint64_t>(outcome.queued.count()));
  counters.add(MetricId::decode_time, static_cast<std::uint64_t>(outcome.decode.count()));
  counters.add(MetricId::transform_time, static_cast<std::uint64_t>(outcome.transform.count()));
  const bool elsewhere =
      outcome.error && (outcome.error->code == Code::kUnavailable || outcome.error->code == Code::kUnsupported);
  if (elsewhere && batch.running()) {
    sample.tried |= 1U << backend;
    sample.error = outcome.error;  // in case nobody else takes it
    again.push_back(std::move(task));
    return;
  }
  encoded_in_flight -= Bytes{task.image.bytes.size()};
  counters.subtract(MetricId::encoded_in_flight, task.image.bytes.size());
  if (outcome.error) return give_up(batch, task.index, *outcome.error);
  ++batch.finished;
  counters.add(MetricId::samples_completed);
}

}  // namespace millrace
