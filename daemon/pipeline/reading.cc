#include "daemon/pipeline/reading.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <string>
#include <utility>

#include "daemon/observe/log.h"
#include "daemon/pipeline/batch/deadline.h"
#include "daemon/pipeline/reading_errors.h"
#include "daemon/pipeline/recorded.h"
#include "daemon/plan/tensor_digest.h"

namespace millrace {
namespace {

// Tasks at the fetcher: enough to keep its threads busy, few enough that an urgent batch is soon its turn.
constexpr std::uint32_t kFetchTasks = 8;
constexpr std::uint32_t kLargestPortion = 16;
constexpr std::uint64_t kReadingNs = 20'000;  // a file of a photograph that the page cache has

constexpr std::chrono::milliseconds kBetweenLooks{250};                        // at tasks that do not come back
constexpr std::chrono::milliseconds kSuspect{20};                              // at one file: it may not come back
constexpr std::chrono::milliseconds kShortestPause{20}, kLongestPause{1'000};  // of a daemon that lacks something

// As FetchWatch::since counts.
std::int64_t ago(std::chrono::steady_clock::duration time) {
  return (std::chrono::steady_clock::now() - time).time_since_epoch().count();
}

bool pausing(const Batch& batch) {
  return batch.reading.want && batch.reading.want->pausing;
}

Result<void> lay_out(Batch& batch, const Fetched& item) {
  if (!item.image) return item.image.error();
  return batch.lay_out(item.index, item.image->info);
}

// How many samples are read at once: a batch's go to all of the fetcher's tasks alike. How many lanes there are does not
// count: on a large host each image would be a message of its own, and these are what the control thread has to do.
std::uint32_t portion_of(const Batch& batch) {
  return std::clamp(batch.count() / kFetchTasks, 1U, kLargestPortion);
}

bool has_unread(const Batch& batch) {
  return batch.count(SampleState::kUnread) > 0;
}

}  // namespace

Reading::Reading(boost::asio::io_context& control, Fetcher& fetcher, const Ledger& ledger, const UserShares& shares,
                 ControlTime& time, SlowImages& slow, Counters& counters, const Options& options, Next& next)
    : control_(control),
      fetcher_(fetcher),
      ledger_(ledger),
      shares_(shares),
      time_(time),
      slow_(slow),
      counters_(counters),
      options_(options),
      most_slow_(std::min(options.slow_tasks, kFetchTasks - 1)),
      next_(next),
      batches_(shares),
      look_(control) {}  // the context takes what timers need while there are descriptors

void Reading::queue(const BatchPtr& batch) {
  if (batch->reading.queued || pausing(*batch) || !batch->running() || !has_unread(*batch)) return;
  batch->reading.queued = true;
  batches_.push(batch->owner(), batch->request().priority, batch);
}

void Reading::put_back(const BatchPtr& batch) {
  batch->reading.queued = true;
  batches_.put_back(batch->owner(), batch->request().priority, batch);
}

void Reading::feed() {
  while (tasks_.size() - stuck_ < kFetchTasks) {
    time_.take(ControlTime::Stage::kReading,
               [&](UserId user, std::uint64_t nanoseconds) { batches_.charge(user, nanoseconds); });
    const std::optional<BatchPtr> next = take_next();
    if (!next) return;
    const auto working = time_.work_for((*next)->owner().user, (*next)->costs());
    const bool given = give(*next);
    if (has_unread(**next)) put_back(*next);
    if (!given) return;
  }
}

// Whose turn it is; nullopt: nobody's for now.
std::optional<BatchPtr> Reading::take_next() {
  bool is_kept = false;  // the turn, for one whose next task comes back soon
  const auto may = [&](const BatchPtr& batch) {
    const bool is_read = batch->running() && !pausing(*batch);  // a pause ends by itself
    is_kept = is_kept || (is_read && keeps_his_turn(*batch));
    return !is_kept && (!is_read || may_be_read(batch));
  };
  while (std::optional<BatchPtr> next = batches_.take(may)) {
    (*next)->reading.queued = false;
    if (!(*next)->running() || pausing(**next)) continue;
    if (!is_late(**next)) return next;
    const InFlight held(*next);  // it ends later, not within this
    next_.fail(*next, deadline_passed(**next));
  }
  return std::nullopt;
}

// Where it may not, its state says what it waits for. A batch behind it in the queue keeps what was said of it last.
bool Reading::may_be_read(const BatchPtr& batch) {
  SessionState why = SessionState::kReading;
  if (!has_room(*batch))
    why = SessionState::kReadBudget;
  else if (has_to_wait(*batch))
    why = stuck_of(batch->owner().user) > 0 ? SessionState::kHost : SessionState::kReadTurn;
  if (why == SessionState::kReading) return true;
  if (std::exchange(batch->reading.waits_for, why) != why) next_.moved(*batch);
  return false;
}

const UserReads& Reading::reads_of(UserId user) const {
  static const UserReads kUnknown;
  const auto found = reads_.find(user);
  return found == reads_.end() ? kUnknown : found->second;
}

// Of a packed batch without places headers alone are read where there is no room for more, so that it gets its sizes and
// what it holds can go on; but not while tasks of its user are out, which may bring less than is feared.
bool Reading::has_room(const Batch& batch) const {
  if (!overfills(batch)) return true;
  return !batch.has_places() && (ledger_.is_full(Resource::kEncoded) || tasks_of(batch.owner().user) == 0);
}

std::uint32_t Reading::tasks_of(UserId user) const {
  return tasks_.count_if([&](const TaskOut& out) { return out.batch.batch()->owner().user == user; });
}

// Whether there is no room for more bytes. Beside other users' sessions half of it is one user's; and who has less than
// an eighth of it there gets that beyond it, for a single file of another's may be larger than all of it.
bool Reading::overfills(const Batch& batch) const {
  const UserId user = batch.owner().user;
  const bool full = ledger_.is_full(Resource::kEncoded);
  if (!shares_.has_others(user)) return full;
  const std::uint64_t room = ledger_.bounds(Resource::kEncoded).total;
  const std::uint64_t held = batch.session().parts.account->in_use(Resource::kEncoded, Bound::kUser);
  return reads_of(user).might_overfill(Bytes{full ? room / 4 : room}, held, tasks_of(user));
}

std::uint32_t Reading::stuck_of(UserId user) const {
  if (stuck_ == 0) return 0;
  return tasks_.count_if([&](const TaskOut& out) { return out.stuck && out.batch.batch()->owner().user == user; });
}

bool Reading::reads_slowly(const Batch& batch) const {
  if (batch.pace().slow()) return true;
  const auto of_session = [&](const TaskOut& out) {
    return out.stuck && &out.batch.batch()->session() == &batch.session();
  };
  return stuck_ > 0 && tasks_.count_if(of_session) > 0;
}

// Whether its tasks count as those of sessions that read slowly. Once all stand-ins work, so do all tasks of a user with
// a stuck one.
bool Reading::is_bounded(const Batch& batch) const {
  return reads_slowly(batch) || (stuck_ >= kMostStandIns && stuck_of(batch.owner().user) > 0);
}

// While a task is stuck, whether a user who reads fast has as many tasks as he may.
bool Reading::has_all_of_his(const Batch& batch) const {
  const UserId user = batch.owner().user;
  return stuck_ > 0 && !is_bounded(batch) && tasks_of(user) - stuck_of(user) >= most_slow_;
}

// Then a turn that he passed would be another's for good, whatever their weights are: he keeps it, unless his tasks may
// not come back either.
bool Reading::keeps_his_turn(const Batch& batch) const {
  if (!has_all_of_his(batch)) return false;
  const std::int64_t long_ago = ago(kSuspect);
  return tasks_.count_if([&](const TaskOut& out) {
    const std::int64_t since = out.watch->since.load(std::memory_order_relaxed);
    return !out.stuck && since != 0 && since < long_ago && out.batch.batch()->owner().user == batch.owner().user;
  }) == 0;
}

// The bounds of README.md's "Reads that do not come back". One thread is left to those who read fast. A user with
// nothing out has one task in any case: his reads may end, and nobody knows when the stuck ones do. A slow session with
// nothing out has one beside its user's stuck ones, up to kFetchTasks: as many as one who read fast may have stuck.
bool Reading::has_to_wait(const Batch& batch) const {
  if (!is_bounded(batch)) return has_all_of_his(batch);
  const UserId user = batch.owner().user;
  const bool stand_ins_work = stuck_ >= kMostStandIns;
  const auto may_hang = [&](const TaskOut& out) {
    const Batch& its = *out.batch.batch();
    return its.owner().user == user && (out.stuck || reads_slowly(its));
  };
  if (stuck_of(user) > 0 && reads_slowly(batch)) {
    const auto of_session = [&](const TaskOut& out) { return &out.batch.batch()->session() == &batch.session(); };
    const std::uint32_t bound = tasks_.count_if(of_session) == 0 ? kFetchTasks : most_slow_;
    if (tasks_.count_if(may_hang) >= (stand_ins_work ? 1 : bound)) return true;
  }
  const std::uint32_t without_stand_in = stand_ins_work ? stuck_ - static_cast<std::uint32_t>(kMostStandIns) : 0;
  if (without_stand_in > 0 && tasks_of(user) == 0) return false;
  const auto slow = [](const TaskOut& out) { return out.slow && !out.stuck; };
  const auto his = [&](const TaskOut& out) { return slow(out) && out.batch.batch()->owner().user == user; };
  return tasks_.count_if(slow) + without_stand_in >= most_slow_ ||
         (shares_.has_others(user) && tasks_.count_if(his) >= std::max(1U, most_slow_ / 2));
}

// From the first task that is out until none is.
void Reading::look_after_tasks() {
  if (std::exchange(is_looked_after_, true)) return;
  look_.expires_after(kBetweenLooks);
  look_.async_wait([this](boost::system::error_code cancelled) {
    if (cancelled) return;
    is_looked_after_ = false;
    if (tasks_.size() == 0) return;
    look_for_stuck_tasks();
    look_after_tasks();
  });
}

void Reading::look_for_stuck_tasks() {
  const std::int64_t long_ago = ago(kStuck);
  tasks_.for_each([&](TaskOut& out) {
    const std::int64_t since = out.watch->since.load(std::memory_order_relaxed);
    if (out.stuck || since == 0 || since > long_ago) return;
    out.stuck = true;
    ++stuck_;
    counters_.add(MetricId::reads_stuck);
    ++out.batch.batch()->reading.stuck;
    next_.moved(*out.batch.batch());
    const UserId user = out.batch.batch()->owner().user;
    stuck_line_.warn(raw(user), "files of user " + std::to_string(raw(user)) +
                                    " have been read for over a second, and others are read beside them: a file "
                                    "server may hang");
  });
  if (stuck_ == 0) return;
  fetcher_.relieve();
  feed();  // what became stuck has let others pass, and so has what may be
}

// false: the fetcher has no room, and the batch is as it was.
bool Reading::give(const BatchPtr& batch) {
  FetchTask task = task_of(batch);
  MILLRACE_CHECK(!task.items.empty());
  const std::uint64_t expected = task.items.size() * kReadingNs;
  const std::uint64_t charged = reads_of(batch->owner().user).cost.scaled(expected);
  const bool is_idle = tasks_.size() == stuck_;
  task.watch = std::make_shared<FetchWatch>();
  const std::uint32_t number = tasks_.add({InFlight(batch), expected, is_bounded(*batch), task.watch});
  // The event loop outlives the fetch threads; this may not, when it is ended with reads under way.
  task.done = [this, &control = control_, number](std::vector<Fetched> items) {
    boost::asio::post(control,
                      [this, number, items = std::move(items)]() mutable { fetched(number, std::move(items)); });
  };
  const auto charge = [&] {
    tasks_.at(number).turn = batches_.charge(batch->owner(), batch->request().priority, charged);
  };
  // With more to do, the fetch threads do it beside this one.
  std::optional<std::vector<Fetched>> at_once = is_idle ? fetcher_.fetch_at_once(task) : std::nullopt;
  if (at_once) {
    tasks_.at(number).is_here = true;
    charge();
    given(*batch);
    task.done(*std::move(at_once));
    return true;
  }
  if (fetcher_.try_fetch(std::move(task))) {
    charge();
    given(*batch);
    look_after_tasks();
    return true;
  }
  tasks_.take(number);
  for (const FetchItem& item : task.items) batch->put_back_unread(item.index);
  return false;
}

void Reading::given(Batch& batch) {
  batch.reading.waits_for = SessionState::kReadTurn;  // with what else is unread
  next_.moved(batch);
  record_portions(tasks_.size());
}

// A packed batch has no places before all of its samples have a size: once there is no room for more bytes, its headers
// alone are read, and the images once more when they have a place.
FetchTask Reading::task_of(const BatchPtr& batch) {
  const Bytes budget{ledger_.bounds(Resource::kEncoded).total};
  FetchTask task{.owner = batch->owner(),
                 .keep_alive = batch,
                 .caller = batch->session().parts.caller,
                 .ring = batch->request().ring,
                 .stop = batch->stop(),
                 .room = Bytes{budget.count / kFetchTasks},
                 .keep = overfills(*batch) ? FetchedBytes::kHeaderOnly : FetchedBytes::kKept};
  for (const std::uint32_t index : batch->take_unread(portion_of(*batch))) {
    const SampleRequest& sample = batch->request().samples[index];
    task.items.push_back(FetchItem{.index = index,
                                   .source = &sample.source,
                                   .ignore_orientation = batch->request().recipe->ignore_orientation,
                                   .keep = wish_of(*batch, sample),
                                   .from_file = batch->sample(index).from_file});
  }
  return task;
}

// What may be kept of it.
CacheWish Reading::wish_of(const Batch& batch, const SampleRequest& sample) const {
  const SessionParts& session = batch.session().parts;
  CacheWish wish{.most = session.cache, .at_once = session.cache_at_once};
  if (session.cache == CacheUse::kTensors)
    wish.tensor_of = tensor_digest(*batch.request().recipe, sample.overrides, batch.request().fidelity,
                                   options_.limits.now().sample.side, options_.cache_seed);
  return wish;
}

void Reading::fetched(std::uint32_t number, std::vector<Fetched> items) {
  const BatchPtr batch = [&] {  // its right to call back goes here
    const TaskOut out = tasks_.take(number);
    record_portions(tasks_.size());
    stuck_ -= out.stuck ? 1 : 0;
    counters_.subtract(MetricId::reads_stuck, out.stuck ? 1 : 0);
    out.batch.batch()->reading.stuck -= out.stuck ? 1 : 0;
    charge_what_it_took(out, items);
    return out.batch.batch();
  }();
  const auto working = time_.work_for(batch->owner().user, batch->costs());
  if (batch->running()) take_all(batch, std::move(items));
  next_.moved(*batch);
  next_.came_back(batch);
  feed();
}

// Of what cannot be read as well.
void Reading::charge_what_it_took(const TaskOut& out, const std::vector<Fetched>& items) {
  std::chrono::nanoseconds took{0};
  std::uint64_t begun = 0;
  Bytes brought{0};
  Cost cost{.fetch_cpu = out.watch->cpu};
  for (const Fetched& item : items) {
    took += item.time;
    if (item.image) brought += Bytes{item.image->bytes.size()};
    cost.from_files += item.from_file;
    if (item.image && item.image->kept) cost.from_kept += Bytes{item.image->kept->bytes->size()};
    begun += item.end == FetchEnd::kNotBegun ? 0 : 1;
  }
  Batch& batch = *out.batch.batch();
  batch.costs()->add(cost);
  batch.pace().note(std::chrono::duration_cast<std::chrono::microseconds>(took));
  const auto actual = static_cast<std::uint64_t>(took.count());
  batches_.correct(batch.owner(), batch.request().priority, out.turn, out.is_here ? 0 : actual);
  if (!shares_.is_here(batch.owner().user)) return;
  UserReads& reads = reads_[batch.owner().user];
  reads.cost.learn(begun * kReadingNs, actual);
  reads.brought(brought);
}

void Reading::left(UserId user) {
  reads_.erase(user);
}

void Reading::take_all(const BatchPtr& batch, std::vector<Fetched> items) {
  const auto missing = std::find_if(items.begin(), items.end(), [](const Fetched& item) { return item.root_missing; });
  if (missing != items.end() && batch->request().guard == Guard::kOn) return break_off(batch, missing->image.error());
  std::vector<SampleTask> ready;
  std::optional<Error> lacking;
  for (Fetched& item : items) {
    if (item.end == FetchEnd::kHostLacks) lacking = item.image.error();
    if (item.end == FetchEnd::kRead) batch->reading.want.reset();  // there is something left, if only just
    if (std::optional<SampleTask> task = take(*batch, std::move(item))) ready.push_back(*std::move(task));
  }
  if (!batch->has_places() && batch->not_read() == 0 && !place_packed(batch, ready)) return;
  if (!ready.empty()) next_.read(batch, std::move(ready));
  if (lacking) pause(batch, *lacking);
  queue(batch);
}

// What a lane needs for the sample; nullopt when it is given up, must be read again, or waits for the rest of a packed
// batch.
std::optional<SampleTask> Reading::take(Batch& batch, Fetched item) {
  if (item.end == FetchEnd::kNotBegun || item.end == FetchEnd::kHostLacks) {
    batch.put_back_unread(item.index);
    return std::nullopt;
  }
  batch.note_reading(item.index, item.time);
  slow_.note(batch, item.index, "reading", item.time);
  batch.session().parts.signs->reading.note(item.time, [&] { return batch.name_of(item.index); });
  counters_.add(HistogramId::fetch_latency, item.time);
  if (const Result<void> laid_out = lay_out(batch, item); !laid_out) {
    batch.give_up(item.index, laid_out.error());
    return std::nullopt;
  }
  if (batch.has_places()) return batch.wait(item.index, *std::move(item.image));
  if (item.end == FetchEnd::kHeaderOnly) {
    batch.defer(item.index, std::nullopt);
  } else {
    batch.defer(item.index, *std::move(item.image));
  }
  return std::nullopt;
}

// All sizes are known. What was kept of the images goes to `ready`, the others are read again. false: the batch fails,
// for with on_error fail none may be left out.
bool Reading::place_packed(const BatchPtr& batch, std::vector<SampleTask>& ready) {
  const Overflow over = batch->overflow();
  if (!over.samples.empty() && batch->request().on_error == OnError::kFail) {
    next_.fail(batch, slot_too_small(*batch, over), over.needed);
    return false;
  }
  for (const std::uint32_t index : over.samples) batch->give_up(index, no_room_in_slot(*batch, index, over.needed));
  ready = batch->place_deferred();
  return true;
}

// The batch's samples are read again after a pause, however on_error is set: nothing is wrong with them.
void Reading::pause(const BatchPtr& batch, const Error& lacking) {
  counters_.add(MetricId::fetch_waits);
  const auto now = std::chrono::steady_clock::now();
  pause_line_.warn("reading pauses, for the daemon lacks something: " + lacking.message);
  std::optional<Batch::HostShortage>& want = batch->reading.want;
  if (!want) want = Batch::HostShortage{.since = now, .pause = kShortestPause};
  if (want->pausing) return;
  if (now - want->since >= options_.host_patience) return next_.fail(batch, host_lacks_for_long(lacking));
  // A packed batch that waits for sizes holds no bytes meanwhile: over the budget nothing is read, so it would wait for
  // itself.
  if (!batch->has_places()) batch->drop_deferred();
  want->pausing = true;
  batch->reading.later.emplace(control_, want->pause);
  want->pause = std::min(want->pause * 2, kLongestPause);
  batch->reading.later->async_wait([this, weak = std::weak_ptr(batch)](boost::system::error_code cancelled) {
    const BatchPtr waiting = weak.lock();
    if (cancelled || !waiting) return;
    if (waiting->reading.want) waiting->reading.want->pausing = false;
    next_.moved(*waiting);
    queue(waiting);
    feed();
  });
}

// Nothing is wrong with a guarded epoch's samples either when their root is not there.
void Reading::break_off(const BatchPtr& batch, const Error& missing) {
  const Error why = root_missing(missing);
  batch->epoch()->break_off(why);
  next_.fail(batch, why);
}

}  // namespace millrace
