// Stage 3 as the pipeline drives it: which samples are read next, and what becomes of their bytes.
#include <algorithm>
#include <utility>

#include "daemon/pipeline/state.h"

namespace millrace {
namespace {

// Tasks at the fetcher: enough to keep its threads busy, few enough that an urgent batch is soon its turn.
constexpr std::uint32_t kFetchTasks = 8;

}  // namespace

void Pipeline::State::feed_fetch() {
  std::vector<BatchPtr> later;  // packed batches whose turn it is not yet
  while (fetch_tasks < kFetchTasks && encoded_in_flight < options.encoded_in_flight) {
    std::optional<BatchPtr> next = to_fetch.take();
    if (!next) break;
    const BatchPtr batch = *std::move(next);
    SessionRun* run = find(batch->session);
    if (!batch->running() || run == nullptr) continue;
    if (!batch->one_size && packed_tasks > 0) {
      later.push_back(batch);
      continue;
    }
    FetchTask task = fetch_task(batch, *run);
    const auto given = static_cast<std::uint32_t>(task.items.size());
    if (!fetcher.try_fetch(std::move(task))) {
      for (const FetchItem& item : task.items) batch->fetch_again.push_back(item.index);
      later.push_back(batch);
      break;
    }
    MILLRACE_CHECK(given > 0);
    ++fetch_tasks;
    ++batch->outstanding;
    if (!batch->one_size) ++packed_tasks;
    if (batch->unfetched()) to_fetch.put_back(batch->session, batch->request.priority, batch);
  }
  for (auto batch = later.rbegin(); batch != later.rend(); ++batch)
    to_fetch.put_back((*batch)->session, (*batch)->request.priority, *batch);
}

// A packed batch is read in one piece, for no sample has a place before all have a size.
FetchTask Pipeline::State::fetch_task(const BatchPtr& batch, SessionRun& run) {
  const std::uint32_t most = batch->one_size ? portion(*batch) : batch->count();
  FetchTask task{
      .keep_alive = batch,
      .caller = run.parts.caller,
      .ring = run.ring,
      .stop = batch->stop,
      .room = batch->one_size ? Bytes{options.encoded_in_flight.count / kFetchTasks} : options.encoded_in_flight};
  while (task.items.size() < most && batch->unfetched()) {
    std::uint32_t index = batch->next_fetch;
    if (batch->fetch_again.empty()) {
      ++batch->next_fetch;
    } else {
      index = batch->fetch_again.back();
      batch->fetch_again.pop_back();
    }
    task.items.push_back(
        FetchItem{index, &batch->request.samples[index].source, batch->request.recipe->ignore_orientation});
  }
  task.done = [this, batch](std::vector<Fetched> items) {
    post([this, batch, items = std::move(items)]() mutable { fetched(batch, std::move(items)); });
  };
  return task;
}

void Pipeline::State::fetched(const BatchPtr& batch, std::vector<Fetched> items) {
  --fetch_tasks;
  --batch->outstanding;
  if (!batch->one_size) --packed_tasks;
  std::vector<SampleTask> ready;
  if (batch->running()) {
    const bool had_more = batch->unfetched();
    for (Fetched& item : items) {
      if (std::optional<SampleTask> task = take_fetched(*batch, std::move(item))) ready.push_back(*std::move(task));
    }
    if (!had_more && batch->unfetched()) to_fetch.push(batch->session, batch->request.priority, batch);
    if (!batch->one_size) ready_packed(batch);
  }
  if (!ready.empty()) enqueue_ready(batch, std::move(ready));
  settle(batch);
  feed_fetch();
}

// What a lane needs for the sample; nullopt when it is given up, must be fetched again, or waits for the rest of a
// packed batch.
std::optional<SampleTask> Pipeline::State::take_fetched(BatchRun& batch, Fetched item) {
  if (!item.begun) {
    batch.fetch_again.push_back(item.index);
    return std::nullopt;
  }
  ++batch.fetched;
  SampleRun& sample = batch.samples[item.index];
  sample.fetch = item.time;
  if (!item.image) {
    give_up(batch, item.index, std::move(item.image).error());
    return std::nullopt;
  }
  EncodedImage image = *std::move(item.image);
  const Result<void> placed = lay_out_sample(batch, item.index, image.info, options.limits.sample.side);
  if (!placed) {
    give_up(batch, item.index, placed.error());
    return std::nullopt;
  }
  encoded_in_flight += Bytes{image.bytes.size()};
  counters.add(MetricId::encoded_in_flight, image.bytes.size());
  if (!batch.one_size) {
    batch.packed[item.index] = std::move(image);
    return std::nullopt;
  }
  return SampleTask{item.index, std::move(image), sample.geometry, pixels_of(batch, item.index)};
}

void Pipeline::State::ready_packed(const BatchPtr& batch) {
  if (!batch->fetch_again.empty()) {
    return fail(batch,
                Error{Code::kExhausted, "the packed batch's encoded images are over the daemon's budget of " +
                                            to_text(options.encoded_in_flight) +
                                            " (memory.encoded_in_flight in its settings): submit fewer at once"});
  }
  if (batch->fetched < batch->count()) return;
  const Result<void> placed = lay_out_packed(*batch);
  if (!placed) return fail(batch, placed.error());
  std::vector<SampleTask> tasks;
  for (std::uint32_t i = 0; i < batch->count(); ++i) {
    if (!batch->packed[i]) continue;
    tasks.push_back(SampleTask{i, *std::exchange(batch->packed[i], std::nullopt), batch->samples[i].geometry,
                               pixels_of(*batch, i)});
  }
  enqueue_ready(batch, std::move(tasks));
}

}  // namespace millrace
