// Stage 3 as the pipeline drives it: which samples are read next, and what becomes of their bytes.
#include <algorithm>
#include <utility>

#include "daemon/observe/log.h"
#include "daemon/pipeline/state.h"

namespace millrace {
namespace {

// Tasks at the fetcher: enough to keep its threads busy, few enough that an urgent batch is soon its turn.
constexpr std::uint32_t kFetchTasks = 8;

constexpr std::chrono::milliseconds kShortestPause{20}, kLongestPause{1'000};  // of a daemon that lacks something

Error host_lacks_for_long(const Error& lacking) {
  return Error{Code::kUnavailable,
               "the daemon lacks what it needs to read files, and waited for it in vain (" + lacking.message +
                   "): no sample is bad and none was left out; try again or resume later, or give the "
                   "daemon more (LimitNOFILE=, memory)"};
}

Error root_missing(const Error& missing) {
  return Error{Code::kUnavailable, missing.message + "; the epoch breaks off, no sample of it counts as bad, and a " +
                                       "position goes on where it is (set on_error to take such samples for bad ones)"};
}

Error no_room_in_slot(const BatchRun& batch, std::uint32_t index, Bytes needed) {
  return Error{Code::kExhausted,
               "its " + to_text(batch.samples[index].bytes) + " of pixels do not fit into the session's slots of " +
                   to_text(batch.arena->slot_bytes()) +
                   " beside the packed batch's smaller images: open the session with slot_bytes of at least " +
                   std::to_string(needed.count) + ", make it smaller by the recipe, or submit fewer samples at once"};
}

Error slot_too_small(const BatchRun& batch, const Overflow& over) {
  const std::uint32_t largest = over.samples.front();
  return Error{Code::kExhausted, "the packed batch needs " + to_text(over.needed) + ", of which " +
                                     source_name(batch.request.samples[largest].source) + " takes " +
                                     to_text(batch.samples[largest].bytes) + ", and the session's slots have " +
                                     to_text(batch.arena->slot_bytes()) +
                                     ": open the session with slot_bytes of at least " +
                                     std::to_string(over.needed.count) +
                                     ", submit fewer samples at once, or have on_error leave out what does not fit"};
}

Error changed_between(const SourceInfo& then, const SourceInfo& now) {
  const auto text = [](Size size) { return std::to_string(size.width) + "x" + std::to_string(size.height); };
  return Error{Code::kInvalid, "it changed while its batch was read: its header said " + text(then.stored) +
                                   " pixels, and now says " + text(now.stored) +
                                   "; write files elsewhere and rename them"};
}

}  // namespace

void Pipeline::State::feed_fetch() {
  std::vector<BatchPtr> later;  // packed batches whose turn it is not yet
  const auto put_back = [&](const BatchPtr& batch) {
    batch->in_fetch_queue = true;
    to_fetch.put_back(batch->session, batch->request.priority, batch);
  };
  while (fetch_tasks < kFetchTasks && encoded_in_flight < options.encoded_in_flight) {
    std::optional<BatchPtr> next = to_fetch.take();
    if (!next) break;
    const BatchPtr batch = *std::move(next);
    batch->in_fetch_queue = false;
    SessionRun* run = find(batch->session);
    if (!batch->running() || run == nullptr) continue;
    if (batch->want && batch->want->pausing) continue;  // comes back by itself
    if (!batch->has_places() && packed_tasks > 0) {
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
    if (!batch->has_places()) ++packed_tasks;
    if (batch->unfetched()) put_back(batch);
  }
  for (auto batch = later.rbegin(); batch != later.rend(); ++batch) put_back(*batch);
}

void Pipeline::State::queue_for_fetch(const BatchPtr& batch) {
  const bool pausing = batch->want && batch->want->pausing;
  if (batch->in_fetch_queue || pausing || !batch->running() || !batch->unfetched()) return;
  batch->in_fetch_queue = true;
  to_fetch.push(batch->session, batch->request.priority, batch);
}

// A packed batch is read in one piece, for no sample has a place before all have a size. Images over the budget are
// then read for their headers alone, and once more when they have a place.
FetchTask Pipeline::State::fetch_task(const BatchPtr& batch, SessionRun& run) {
  const bool places = batch->has_places();
  const std::uint32_t most = places ? portion(*batch) : batch->count();
  FetchTask task{.keep_alive = batch,
                 .caller = run.parts.caller,
                 .ring = batch->request.ring,
                 .stop = batch->stop,
                 .room = places ? Bytes{options.encoded_in_flight.count / kFetchTasks} : options.encoded_in_flight,
                 .when_full = places ? WhenFull::kGiveBack : WhenFull::kHeaderOnly};
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
  if (!batch->has_places()) --packed_tasks;
  if (batch->running()) take_all_fetched(batch, std::move(items));
  settle(batch);
  feed_fetch();
}

void Pipeline::State::take_all_fetched(const BatchPtr& batch, std::vector<Fetched> items) {
  const auto missing = std::find_if(items.begin(), items.end(), [](const Fetched& item) { return item.root_missing; });
  if (missing != items.end() && batch->request.guard == Guard::kOn)
    return break_off_epoch(batch, missing->image.error());
  std::vector<SampleTask> ready;
  std::optional<Error> lacking;
  for (Fetched& item : items) {
    if (item.end == FetchEnd::kHostLacks) lacking = item.image.error();
    if (item.end == FetchEnd::kRead) batch->want.reset();  // there is something left, if only just
    if (std::optional<SampleTask> task = take_fetched(*batch, std::move(item))) ready.push_back(*std::move(task));
  }
  if (!batch->has_places() && batch->unsized == 0) {
    if (const Result<void> placed = place_packed(*batch, ready); !placed) return fail(batch, placed.error());
  }
  if (!ready.empty()) enqueue_ready(batch, std::move(ready));
  if (lacking) wait_for_host(batch, *lacking);
  queue_for_fetch(batch);
}

// The batch's samples are read again after a pause, however on_error is set: nothing is wrong with them.
void Pipeline::State::wait_for_host(const BatchPtr& batch, const Error& lacking) {
  counters.add(MetricId::fetch_waits);
  const auto now = std::chrono::steady_clock::now();
  want_line.warn("reading pauses, for the daemon lacks something: " + lacking.message);
  if (!batch->want) batch->want = HostWant{.since = now, .pause = kShortestPause};
  if (batch->want->pausing) return;
  if (now - batch->want->since >= options.host_patience) return fail(batch, host_lacks_for_long(lacking));
  if (!batch->has_places()) drop_kept(*batch);
  batch->want->pausing = true;
  batch->fetch_later.emplace(control, batch->want->pause);
  batch->want->pause = std::min(batch->want->pause * 2, kLongestPause);
  batch->fetch_later->async_wait([this, weak = std::weak_ptr(batch)](boost::system::error_code cancelled) {
    const BatchPtr waiting = weak.lock();
    if (cancelled || !waiting) return;
    if (waiting->want) waiting->want->pausing = false;
    queue_for_fetch(waiting);
    feed_fetch();
  });
}

// Nothing is wrong with a guarded epoch's samples either when their root is not there.
void Pipeline::State::break_off_epoch(const BatchPtr& batch, const Error& missing) {
  const Error why = root_missing(missing);
  for (const auto& epoch : find(batch->session)->epochs) {
    if (epoch->id() == batch->epoch->stream) epoch->break_off(why);
  }
  fail(batch, why);
}

// A packed batch that waits for sizes holds no bytes meanwhile: over the budget nothing is read, so it would wait for
// itself.
void Pipeline::State::drop_kept(BatchRun& batch) {
  for (std::uint32_t i = 0; i < batch.count(); ++i) {
    const std::optional<EncodedImage> image = std::exchange(batch.packed[i], std::nullopt);
    if (!image) continue;
    forget_encoded(*image);
    batch.unkept.push_back(i);
    --batch.fetched;
  }
}

// What a lane needs for the sample but its destination; nullopt when it is given up, must be fetched again, or waits for the rest of a
// packed batch.
std::optional<SampleTask> Pipeline::State::take_fetched(BatchRun& batch, Fetched item) {
  if (item.end == FetchEnd::kNotBegun || item.end == FetchEnd::kHostLacks) {
    batch.fetch_again.push_back(item.index);
    return std::nullopt;
  }
  SampleRun& sample = batch.samples[item.index];
  sample.fetch += item.time;
  note_time(batch, item.index, "reading", item.time);
  const bool sizing = !batch.has_places();
  if (sizing) --batch.unsized;
  if (item.end == FetchEnd::kRead) ++batch.fetched;
  const Result<void> placed = place_fetched(batch, item);
  if (!placed) {
    if (item.end == FetchEnd::kHeaderOnly) ++batch.fetched;
    give_up(batch, item.index, placed.error());
    return std::nullopt;
  }
  if (item.end == FetchEnd::kHeaderOnly) {
    batch.unkept.push_back(item.index);
    return std::nullopt;
  }
  EncodedImage image = *std::move(item.image);
  encoded_in_flight += Bytes{image.bytes.size()};
  counters.add(MetricId::encoded_in_flight, image.bytes.size());
  if (sizing) {
    batch.packed[item.index] = std::move(image);
    return std::nullopt;
  }
  return SampleTask{item.index, std::move(image), sample.geometry, {}};
}

// Its boxes, and in a one-size batch its place; of one that is read again, that they still hold.
Result<void> Pipeline::State::place_fetched(BatchRun& batch, const Fetched& item) {
  if (!item.image) return item.image.error();
  const SampleRun& sample = batch.samples[item.index];
  if (!batch.placed) return lay_out_sample(batch, item.index, item.image->info, options.limits.sample.side);
  if (item.image->info == *sample.source) return {};
  return changed_between(*sample.source, item.image->info);
}

// All sizes are known. What was kept of the images goes to `ready`, the others are read again. An error is the batch's:
// with on_error fail none may be left out.
Result<void> Pipeline::State::place_packed(BatchRun& batch, std::vector<SampleTask>& ready) {
  const Overflow over = overflow(batch);
  if (!over.samples.empty() && batch.request.on_error == OnError::kFail) {
    batch.slot_bytes = over.needed;
    return slot_too_small(batch, over);
  }
  for (const std::uint32_t index : over.samples) {
    if (const std::optional<EncodedImage> image = std::exchange(batch.packed[index], std::nullopt)) {
      forget_encoded(*image);
    } else {
      ++batch.fetched;
    }
    give_up(batch, index, no_room_in_slot(batch, index, over.needed));
  }
  lay_out_packed(batch);
  for (std::uint32_t i = 0; i < batch.count(); ++i) {
    if (!batch.packed[i]) continue;
    ready.push_back(SampleTask{i, *std::exchange(batch.packed[i], std::nullopt), batch.samples[i].geometry, {}});
  }
  for (const std::uint32_t index : batch.unkept) {
    if (!batch.samples[index].error) batch.fetch_again.push_back(index);
  }
  batch.unkept.clear();
  return {};
}

void Pipeline::State::forget_encoded(const EncodedImage& image) {
  encoded_in_flight -= Bytes{image.bytes.size()};
  counters.subtract(MetricId::encoded_in_flight, image.bytes.size());
}

}  // namespace millrace
