// Memory for decoding, which all lanes share. It is charged here, on the control thread and before a lane gets the
// picture, so no lane ever waits for it: what finds no room is set aside and goes on when a job has given some back.
#include <algorithm>
#include <utility>

#include "daemon/formats/decoding_memory.h"
#include "daemon/pipeline/state.h"

namespace millrace {

Result<void> Pipeline::State::check_decoding(const SampleTask& task) const {
  const Bytes needed = decoding_memory(task.image.info, task.geometry).needed;
  if (needed <= std::max(options.decoding, kLaneKeeps)) return {};
  return Error{Code::kExhausted,
               "decoding it takes " + to_text(needed) + ", and all lanes together may take " +
                   to_text(options.decoding) +
                   " (memory.decoding in the daemon's settings): raise it, or save the image smaller, "
                   "or, if it is a JPEG of several scans, in one"};
}

// What may be more than the budget, but need not, is decoded alone.
Bytes Pipeline::State::decoding_charge(const SampleTask& task) const {
  const Bytes at_most = decoding_memory(task.image.info, task.geometry).at_most;
  return at_most <= kLaneKeeps ? Bytes{0} : std::min(at_most, options.decoding);
}

// false: no room, or others wait for some already.
bool Pipeline::State::charge_decoding(Bytes bytes) {
  if (next_large || !waiting_for_memory.empty() || decoding_in_use + bytes > options.decoding) return false;
  decoding_in_use += bytes;
  counters.add(MetricId::decoding_in_use, bytes.count);
  return true;
}

void Pipeline::State::refund_decoding(Bytes bytes) {
  decoding_in_use -= bytes;
  counters.subtract(MetricId::decoding_in_use, bytes.count);
}

void Pipeline::State::set_aside(const BatchPtr& batch, std::size_t backend, SampleTask task) {
  ++batch->outstanding;
  const Bytes bytes = decoding_charge(task);
  waiting_for_memory.push(batch->session, batch->request.priority, SetAside{batch, backend, std::move(task), bytes});
}

// Those that waited, in turns; and where other samples are ready, on half the lanes at most.
void Pipeline::State::feed_set_aside() {
  while (true) {
    if (!next_large) next_large = waiting_for_memory.take();
    if (!next_large) return;
    BackendRun& run = backends[next_large->backend];
    if (!next_large->batch->running() || run.backend->lost()) {
      SetAside dropped = *std::exchange(next_large, std::nullopt);
      std::vector<SampleTask> tasks;
      tasks.push_back(std::move(dropped.task));
      give_back(dropped.backend, dropped.batch, std::move(tasks));
      continue;
    }
    const std::uint32_t depth = run.backend->depth();
    if (run.in_it >= depth || (!run.ready.empty() && run.waited >= std::max(1U, depth / 4))) return;
    if (decoding_in_use + next_large->bytes > options.decoding) return;
    std::vector<SampleTask> tasks;
    tasks.push_back(std::move(next_large->task));
    DecodeJob job = decode_job(next_large->backend, next_large->batch, std::move(tasks),
                               Charge{.bytes = next_large->bytes, .had_to_wait = true});
    if (!run.backend->try_submit(std::move(job))) {
      next_large->task = std::move(job.tasks.front());
      return;
    }
    decoding_in_use += next_large->bytes;
    counters.add(MetricId::decoding_in_use, next_large->bytes.count);
    ++run.in_it;
    ++run.waited;
    next_large.reset();
  }
}

// Nobody wants the batch any more: its slot need not wait for others' memory.
void Pipeline::State::drop_set_aside(const BatchPtr& batch) {
  std::vector<SetAside> dropped =
      waiting_for_memory.remove([&](const SetAside& waiting) { return waiting.batch == batch; });
  if (next_large && next_large->batch == batch) dropped.push_back(*std::exchange(next_large, std::nullopt));
  for (SetAside& waiting : dropped) {
    std::vector<SampleTask> tasks;
    tasks.push_back(std::move(waiting.task));
    give_back(waiting.backend, batch, std::move(tasks));
  }
}

}  // namespace millrace
