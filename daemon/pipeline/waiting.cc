#include "daemon/pipeline/waiting.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "daemon/pipeline/batch/deadline.h"
#include "daemon/pipeline/batch/request_room.h"

namespace millrace {
namespace {

// Whether a batch fits a slot.
Result<void> check_slot(const TensorLayout& layout, std::uint32_t samples, const Arena& arena) {
  const Bytes needed = least_slot_bytes(layout, samples), slot = arena.slot_bytes();
  if (samples > arena.most_samples())
    return Error{Code::kExhausted, "a batch of " + std::to_string(samples) +
                                       " has more records than the session's slots have room for, " +
                                       std::to_string(arena.most_samples()) +
                                       ": make smaller batches, or open another session"};
  if (needed <= slot) return {};
  return Error{Code::kExhausted, "a batch of " + std::to_string(samples) + " needs " + to_text_beside(needed, slot) +
                                     " and the session's slots have " + to_text_beside(slot, needed) +
                                     ": open the session with slot_bytes of at least " + std::to_string(needed.count) +
                                     ", or make smaller batches"};
}

// Samples of an order that a client gives: a dataset's size bounds neither its batches nor how many there are.
constexpr std::uint64_t kRepeatedAtWill = std::uint64_t{1} << 62U;

Error order_is_the_daemons() {
  return {Code::kInvalid, "give_batches: this epoch's order is the daemon's; start one with `given`"};
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Result<void> Waiting::submit(BatchRequest request, Charge room) {
  MILLRACE_TRY_VOID(around_.placer.check_pin(request.backend));
  MILLRACE_TRY_VOID(session_->parts.slots->has_slots());
  MILLRACE_TRY(Charge queued, session_->parts.account->charge(Resource::kQueuedBatches, 1));
  MILLRACE_TRY(const BatchPtr batch, new_batch(std::move(request), nullptr));
  batch->queued = std::move(queued);
  batch->room = std::move(room);
  batches_.push_back(batch);
  watch_deadline(batch);
  return {};
}

Result<BatchPtr> Waiting::new_batch(BatchRequest request, std::shared_ptr<EpochRun> epoch) {
  if (request.samples.empty()) return Error{Code::kInvalid, "samples: a batch needs at least one"};
  MILLRACE_TRY(std::unique_ptr<const TensorLayout> layout,
               TensorLayout::create(request.recipe, around_.limits.now().sample.side));
  MILLRACE_TRY_VOID(check_slot(*layout, static_cast<std::uint32_t>(request.samples.size()), *session_->parts.arena));
  return std::make_shared<Batch>(session_, std::move(request), std::move(layout), std::move(epoch), around_.batches);
}

BatchPtr Waiting::find(BatchId submitted) const {
  const auto found =
      std::find_if(batches_.begin(), batches_.end(), [&](const BatchPtr& batch) { return batch->is(submitted); });
  return found == batches_.end() ? nullptr : *found;
}

void Waiting::remove(const BatchPtr& batch) {
  if (std::erase(batches_, batch) > 0) batch->queued.refund();
}

void Waiting::watch_deadline(const BatchPtr& batch) {
  if (!batch->request().deadline) return;
  batch->deadline.emplace(around_.control, *batch->request().deadline);
  batch->deadline->async_wait([&next = around_.next, weak = std::weak_ptr(batch)](boost::system::error_code cancelled) {
    const BatchPtr late = weak.lock();
    if (cancelled || !late) return;
    next.fail(late, deadline_passed(*late));
  });
}

bool Waiting::wants_slot() const {
  const std::uint32_t slots = session_->parts.slots->slots();
  return !batches_.empty() || std::ranges::any_of(epochs_, [&](const auto& epoch) { return epoch->has_next(slots); });
}

bool Waiting::is_to_be_given() const {
  return std::ranges::any_of(
      epochs_, [](const auto& epoch) { return epoch->request().order_by == OrderBy::kClient && !epoch->all_given(); });
}

BatchPtr Waiting::next() {
  const auto less_urgent = [](const BatchPtr& a, const BatchPtr& b) {
    return a->request().priority < b->request().priority;
  };
  const auto first = std::max_element(batches_.begin(), batches_.end(), less_urgent);
  if (first != batches_.end()) {
    BatchPtr batch = std::move(*first);
    batches_.erase(first);
    batch->queued.refund();
    return batch;
  }
  for (std::size_t turn = 0; turn < epochs_.size(); ++turn) {
    std::rotate(epochs_.begin(), epochs_.begin() + 1, epochs_.end());
    if (BatchPtr batch = next_of(epochs_.back())) return batch;
  }
  return nullptr;
}

// Batches that failed have no slot and are kept all the same until those before them have ended: no more than slots.
BatchPtr Waiting::next_of(const std::shared_ptr<EpochRun>& epoch) {
  if (!epoch->has_next(session_->parts.slots->slots())) return nullptr;
  if (Result<void> still = check_size(epoch->request()); !still) {
    epoch->break_off(std::move(still).error());  // limits.side has been lowered since it began
    return nullptr;
  }
  Result<BatchPtr> batch = new_batch(*epoch->next(), epoch);
  MILLRACE_CHECK(batch.has_value());  // of the size that was checked; limits change on this thread alone
  uses_.reached(epoch->id(), epoch->samples_begun());
  return *std::move(batch);
}

bool Waiting::plan(const EpochRequest& request) {
  Result<EpochCharges> charges = charge(request);
  if (!charges) {
    session_->parts.sink->epoch_failed(request.id, charges.error());
    return false;
  }
  planning_.emplace(request.id, Planning{*std::move(charges)});
  return true;
}

Result<void> Waiting::check(const EpochRequest& request) const {
  const auto same = [&](const auto& epoch) { return epoch->id() == request.id; };
  if (planning_.contains(request.id) || std::any_of(epochs_.begin(), epochs_.end(), same))
    return Error{Code::kInvalid, "stream_id: an epoch of this id is running; give every epoch its own"};
  MILLRACE_TRY_VOID(around_.placer.check_pin(request.backend));
  MILLRACE_TRY_VOID(session_->parts.slots->has_slots());
  return check_size(request);
}

// What its batches have to be like, by the limits of now.
Result<void> Waiting::check_size(const EpochRequest& request) const {
  MILLRACE_TRY(const std::unique_ptr<const TensorLayout> layout,
               TensorLayout::create(request.recipe, around_.limits.now().sample.side));
  return check_slot(*layout, request.order.batch_size, *session_->parts.arena);
}

Result<EpochCharges> Waiting::charge(const EpochRequest& request) {
  MILLRACE_TRY_VOID(check(request));
  Account& account = *session_->parts.account;
  EpochOrderSpec order = request.order;
  if (request.order_by == OrderBy::kClient) order.samples = kRepeatedAtWill;
  EpochCharges charges;
  MILLRACE_TRY(charges.epoch, account.charge(Resource::kEpochs, 1));
  MILLRACE_TRY(charges.batches, account.charge(Resource::kRequests, room_for(order, session_->parts.slots->slots())));
  if (request.order_by == OrderBy::kDaemon) {
    MILLRACE_TRY(charges.order, around_.orders.charge(account, request.order));
  }
  return charges;
}

std::optional<EpochOrderSpec> Waiting::planned(EpochRequest request, Result<EpochOrder> order,
                                               std::shared_ptr<const EpochPositions> positions) {
  auto planned = planning_.extract(request.id);
  BatchSink& sink = *session_->parts.sink;
  if (planned.mapped().wrong) order = *std::move(planned.mapped().wrong);
  if (!order) {
    sink.epoch_failed(request.id, order.error());
    return std::nullopt;
  }
  const std::shared_ptr<const Charge> kept = planned.mapped().charges.order;
  const auto epoch =
      std::make_shared<EpochRun>(std::move(request), *std::move(order), std::move(planned.mapped().charges));
  epochs_.push_back(epoch);
  epoch->announce(sink);
  if (planned.mapped().state == Planned::kStopped) epoch->stop();
  EpochBegun begun{.order = epoch->request().order,
                   .samples = epoch->samples(),
                   .reached = epoch->samples_begun(),
                   .positions = std::move(positions),
                   .next = nullptr};
  return uses_.begin(epoch->id(), *epoch->request().dataset, std::move(begun), seconds_now(), kept);
}

// Nobody knows when which sample comes, but that this dataset is in use.
void Waiting::begin_given(EpochRequest request) {
  BatchSink& sink = *session_->parts.sink;
  Result<EpochCharges> charges = charge(request);
  if (!charges) return sink.epoch_failed(request.id, charges.error());
  const auto epoch = std::make_shared<EpochRun>(std::move(request), std::nullopt, *std::move(charges));
  epochs_.push_back(epoch);
  epoch->announce(sink);
  const EpochOrderSpec& order = epoch->request().order;
  static_cast<void>(uses_.begin(epoch->id(), *epoch->request().dataset,
                                EpochBegun{.order = order, .samples = order.samples}, seconds_now()));
}

void Waiting::give(EpochStreamId stream, Result<GivenBatches> batches) {
  if (const auto planned = planning_.find(stream); planned != planning_.end()) {
    planned->second.wrong = batches ? order_is_the_daemons() : std::move(batches).error();
    return;
  }
  const auto found = std::ranges::find(epochs_, stream, [](const auto& epoch) { return epoch->id(); });
  if (found == epochs_.end()) return;
  if (Result<void> taken = take_given(**found, std::move(batches)); !taken)
    (*found)->break_off(std::move(taken).error());
}

Result<void> Waiting::take_given(EpochRun& epoch, Result<GivenBatches> given) {
  MILLRACE_TRY(GivenBatches batches, std::move(given));
  const EpochRequest& request = epoch.request();
  if (request.order_by == OrderBy::kDaemon) return order_is_the_daemons();
  if (epoch.all_given()) return Error{Code::kInvalid, "give_batches: the last batch was given already"};
  if (std::ranges::any_of(batches.sizes, [&](std::uint32_t size) { return size > request.order.batch_size; }))
    return Error{Code::kInvalid,
                 "sizes: must be at most the epoch's batch_size, " + std::to_string(request.order.batch_size)};
  for (const std::uint64_t sample : batches.samples) {
    if (sample >= request.order.samples)
      return Error{Code::kInvalid, "samples: the dataset has " + std::to_string(request.order.samples) +
                                       ", there is no sample " + std::to_string(sample)};
  }
  MILLRACE_TRY(Charge room, session_->parts.account->charge(Resource::kRequests, batches.memory().count));
  epoch.give(std::move(batches), std::move(room));
  return {};
}

void Waiting::foreseen(EpochStreamId stream, std::shared_ptr<const EpochPositions> next) {
  uses_.foreseen(stream, std::move(next));
}

void Waiting::stop(EpochStreamId stream) {
  if (const auto planned = planning_.find(stream); planned != planning_.end())
    planned->second.state = Planned::kStopped;
  for (const auto& epoch : epochs_) {
    if (epoch->id() == stream) epoch->stop();
  }
}

void Waiting::interrupt(const Error& why) {
  for (const auto& epoch : epochs_) epoch->interrupt(why);
}

void Waiting::retire() {
  for (std::size_t i = epochs_.size(); i-- > 0;) {
    if (!epochs_[i]->over()) continue;
    const std::shared_ptr<EpochRun> done = std::move(epochs_[i]);
    epochs_.erase(epochs_.begin() + static_cast<std::ptrdiff_t>(i));
    uses_.ended(done->id(), seconds_now());
    done->say_goodbye(*session_->parts.sink);
  }
}

}  // namespace millrace
