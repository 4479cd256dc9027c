// Stages 4 and 5 as the pipeline drives them: samples go to backends, come back made, broken, or to be tried elsewhere.
#include <algorithm>
#include <utility>

#include "daemon/observe/log.h"
#include "daemon/pipeline/state.h"

namespace millrace {

void Pipeline::State::enqueue_ready(const BatchPtr& batch, std::vector<SampleTask> tasks) {
  for (SampleTask& task : tasks) {
    SampleRun& sample = batch->samples[task.index];
    const Result<std::size_t> chosen = placer.place(task.image.info, batch->request.backend, sample.tried);
    if (!chosen) {
      // What the last backend said about it tells more than that none is left.
      const std::uint32_t index = task.index;
      forget_encoded(task.image);
      give_up(*batch, index, sample.error ? *std::exchange(sample.error, std::nullopt) : chosen.error());
      continue;
    }
    if (const Result<void> possible = check_decoding(task); !possible) {
      forget_encoded(task.image);
      give_up(*batch, task.index, possible.error());
      continue;
    }
    sample.error.reset();
    sample.backend = static_cast<std::uint32_t>(*chosen);
    ReadySamples& ready = batch->ready[*chosen];
    if (ready.empty()) {  // a batch that has some waits already
      ++batch->outstanding;
      backends[*chosen].ready.push(batch->session, batch->request.priority, batch);
    }
    ready.add(std::move(task));
  }
  for (std::size_t i = 0; i < backends.size(); ++i) feed_backend(i);
}

void Pipeline::State::feed_backend(std::size_t index) {
  BackendRun& run = backends[index];
  while (run.in_it < run.backend->depth()) {
    const std::optional<BatchPtr> next = run.ready.take();
    if (!next) return;
    const BatchPtr& batch = *next;
    ReadySamples& ready = batch->ready[index];
    if (!batch->running() || run.backend->lost()) {
      give_back(index, batch, ready.take(batch->count()));
      continue;
    }
    Charge charge;
    std::vector<SampleTask> tasks = take_ready(index, batch, charge);
    if (tasks.empty()) {  // all were set aside, and are outstanding themselves
      if (ready.empty()) {
        --batch->outstanding;
      } else {
        run.ready.put_back(batch->session, batch->request.priority, batch);
      }
      continue;
    }
    DecodeJob job = decode_job(index, batch, std::move(tasks), charge);
    if (!run.backend->try_submit(std::move(job))) {
      refund_decoding(charge.bytes);
      for (SampleTask& task : job.tasks) ready.add(std::move(task));
      run.ready.put_back(batch->session, batch->request.priority, batch);
      return;
    }
    ++run.in_it;
    if (ready.empty()) continue;  // the job is outstanding in the batch's place
    ++batch->outstanding;
    run.ready.put_back(batch->session, batch->request.priority, batch);
  }
}

// The batch's next samples, charged for together: a lane decodes one after the other, so the largest counts.
std::vector<SampleTask> Pipeline::State::take_ready(std::size_t index, const BatchPtr& batch, Charge& charge) {
  ReadySamples& ready = batch->ready[index];
  const std::uint32_t waiting = ready.size() + batch->count() - batch->fetched;
  std::vector<SampleTask> tasks;
  for (SampleTask& task : ready.take(samples_a_job(batch->count(), waiting, lanes))) {
    const Bytes bytes = decoding_charge(task);
    if (bytes > charge.bytes) {
      if (!charge_decoding(bytes - charge.bytes)) {
        set_aside(batch, index, std::move(task));
        continue;
      }
      charge.bytes = bytes;
    }
    tasks.push_back(std::move(task));
  }
  return tasks;
}

DecodeJob Pipeline::State::decode_job(std::size_t index, const BatchPtr& batch, std::vector<SampleTask> tasks,
                                      Charge charge) {
  for (SampleTask& task : tasks) task.out = destination(index, *batch, task.index);
  return DecodeJob{
      .tasks = std::move(tasks),
      .recipe = batch->request.recipe,
      .fidelity = batch->request.fidelity,
      .stop = batch->stop,
      .keep_alive = batch,
      .done = [this, index, batch, charge](std::vector<SampleTask> done, std::vector<SampleOutcome> outcomes) {
        post([this, index, batch, charge, done = std::move(done), outcomes = std::move(outcomes)]() mutable {
          made(index, batch, charge, std::move(done), std::move(outcomes));
        });
      }};
}

// In the slot if the backend can write there, else on the host, to be brought there before the seal.
Destination Pipeline::State::destination(std::size_t index, const BatchRun& batch, std::uint32_t sample) const {
  Arena& arena = *batch.arena;
  const SlotRange range = range_of(batch.samples[sample]);
  const std::vector<MemoryId>& own = backends[index].memories;
  const bool directly = arena.memory() == kHostMemory || std::find(own.begin(), own.end(), arena.memory()) != own.end();
  return directly ? arena.destination(batch.lease->slot, range) : arena.stage(batch.lease->slot, range);
}

// Nobody wants them any more, or they go elsewhere: as if the backend had given them back.
void Pipeline::State::give_back(std::size_t index, const BatchPtr& batch, std::vector<SampleTask> tasks) {
  const Error why =
      batch->running() ? Error{Code::kUnavailable, "the device is lost"} : Error{Code::kCancelled, "stopped"};
  std::vector<SampleOutcome> outcomes;
  for (const SampleTask& task : tasks) outcomes.push_back(SampleOutcome{.index = task.index, .error = why});
  ++backends[index].in_it;
  post([this, index, batch, tasks = std::move(tasks), outcomes = std::move(outcomes)]() mutable {
    made(index, batch, {}, std::move(tasks), std::move(outcomes));
  });
}

void Pipeline::State::made(std::size_t index, const BatchPtr& batch, Charge charge, std::vector<SampleTask> tasks,
                           std::vector<SampleOutcome> outcomes) {
  BackendRun& run = backends[index];
  --run.in_it;
  if (charge.had_to_wait) --run.waited;
  refund_decoding(charge.bytes);
  --batch->outstanding;
  if (run.backend->lost() && placer.set_lost(index))
    log_error("backend " + run.name +
              " has lost its device: what it had goes to the others; restart the daemon when the device is back");
  MILLRACE_CHECK(tasks.size() == outcomes.size());
  std::vector<SampleTask> again;
  for (std::size_t i = 0; i < tasks.size(); ++i) note_outcome(*batch, index, std::move(tasks[i]), outcomes[i], again);
  if (!again.empty()) enqueue_ready(batch, std::move(again));
  settle(batch);
  feed_set_aside();
  feed_backend(index);
  feed_set_aside();  // of what else was ready there may be nothing left
  feed_fetch();
}

void Pipeline::State::note_outcome(BatchRun& batch, std::size_t backend, SampleTask task, const SampleOutcome& outcome,
                                   std::vector<SampleTask>& again) {
  SampleRun& sample = batch.samples[task.index];
  sample.queued += outcome.queued;
  sample.decode += outcome.decode;
  sample.transform += outcome.transform;
  note_time(batch, task.index, "making", outcome.decode + outcome.transform);
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
  forget_encoded(task.image);
  if (outcome.error) return give_up(batch, task.index, *outcome.error);
  sample.done = true;
  ++batch.finished;
  counters.add(MetricId::samples_completed);
}

}  // namespace millrace
