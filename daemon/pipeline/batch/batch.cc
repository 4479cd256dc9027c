#include "daemon/pipeline/batch/batch.h"

#include <algorithm>
#include <string>

#include "daemon/plan/draw_geometry.h"
#include "proto/shm/segment_layout.h"

namespace millrace {
namespace {

constexpr unsigned bit(SampleState state) {
  return 1U << static_cast<unsigned>(state);
}

// The states that a sample may come from.
constexpr unsigned before(SampleState state) {
  using enum SampleState;
  switch (state) {
    case kUnread:
      return bit(kReading) | bit(kDeferred) | bit(kMaking);
    case kReading:
      return bit(kUnread);
    case kDeferred:
      return bit(kReading) | bit(kWaiting);
    case kWaiting:
      return bit(kReading) | bit(kDeferred) | bit(kMaking);
    case kMaking:
      return bit(kWaiting) | bit(kDeferred);
    case kMade:
      return bit(kMaking);
    case kBad:
      return bit(kReading) | bit(kDeferred) | bit(kWaiting) | bit(kMaking);
  }
  return 0;
}

constexpr unsigned bit(Batch::Phase phase) {
  return 1U << static_cast<unsigned>(phase);
}

constexpr unsigned before(Batch::Phase phase) {
  using enum Batch::Phase;
  switch (phase) {
    case kQueued:
      return 0;
    case kRunning:
      return bit(kQueued);
    case kFinalizing:
      return bit(kRunning);
    case kFailing:
      return bit(kQueued) | bit(kRunning) | bit(kFinalizing);
    case kEnded:
      return bit(kFinalizing) | bit(kFailing);
  }
  return 0;
}

Error changed_between(const SourceInfo& then, const SourceInfo& now) {
  const auto text = [](Size size) { return std::to_string(size.width) + "x" + std::to_string(size.height); };
  return Error{Code::kInvalid, "it changed while its batch was read: its header said " + text(then.stored) +
                                   " pixels, and now says " + text(now.stored) +
                                   "; write files elsewhere and rename them"};
}

}  // namespace

Batch::Batch(std::shared_ptr<OpenSession> session, BatchRequest request, std::unique_ptr<const TensorLayout> layout,
             std::shared_ptr<EpochRun> epoch, const Surroundings& around)
    : ready(around.backends),
      session_(std::move(session)),
      request_(std::move(request)),
      layout_(std::move(layout)),
      epoch_(std::move(epoch)),
      around_(around),
      samples_(request_.samples.size()) {
  counts_[static_cast<std::size_t>(SampleState::kUnread)] = count();
  slot_.tensor = layout_->least_bytes(count());
  if (!layout_->places_each_alone()) deferred_.resize(count());
  ++around_.owner.under_way_;
  around_.counters.add(MetricId::batches_admitted);
  around_.counters.add(MetricId::batches_in_flight);
}

Batch::~Batch() = default;

void Batch::enter(Phase phase) {
  MILLRACE_CHECK((before(phase) & bit(phase_)) != 0);
  phase_ = phase;
}

void Batch::enter(std::uint32_t index, SampleState state) {
  SampleRun& sample = samples_[index];
  MILLRACE_CHECK((before(state) & bit(sample.state)) != 0);
  if (((around_.devices >> sample.backend) & 1U) != 0)
    on_devices_ += (state == SampleState::kMaking ? 1U : 0U) - (sample.state == SampleState::kMaking ? 1U : 0U);
  --counts_[static_cast<std::size_t>(sample.state)];
  ++counts_[static_cast<std::size_t>(state)];
  sample.state = state;
}

void Batch::begin(const SlotLease& lease, std::shared_ptr<Arena> arena) {
  enter(Phase::kRunning);
  lease_ = lease;
  arena_ = std::move(arena);
  around_.counters.add(MetricId::samples_in_flight, count());
}

void Batch::finalize(FinalSlot slot) {
  enter(Phase::kFinalizing);
  for (const std::uint32_t index : slot.zeroed) {
    SampleRun& sample = samples_[index];
    sample.flags |= shm::kZeroed;
    if (sample.place) continue;
    const Size size = layout_->blank(index).size;
    sample.geometry = SampleGeometry{};
    sample.geometry.window = Box{0, 0, static_cast<std::int32_t>(size.width), static_cast<std::int32_t>(size.height)};
  }
  for (std::uint32_t i = 0; i < count(); ++i) samples_[i].place = slot.places[i];
  slot_ = std::move(slot);
}

void Batch::fail() {
  enter(Phase::kFailing);
  stop_->stop();
}

std::optional<SlotLease> Batch::end() {
  MILLRACE_CHECK(!in_flight());
  enter(Phase::kEnded);
  --around_.owner.under_way_;
  around_.counters.subtract(MetricId::batches_in_flight);
  if (arena_) around_.counters.subtract(MetricId::samples_in_flight, count());
  for (SampleRun& sample : samples_) sample.encoded.refund();
  deferred_.clear();
  deadline.reset();
  reading.later.reset();
  if (lease_) arena_->forget(lease_->slot);
  arena_.reset();
  return std::exchange(lease_, std::nullopt);
}

bool Batch::first_bad_is_known() {
  while (made_in_order_ < count() && samples_[made_in_order_].state == SampleState::kMade) ++made_in_order_;
  return made_in_order_ < count() && samples_[made_in_order_].bad();
}

SampleFailure Batch::failure(std::uint32_t index) const {
  const SampleRequest& sample = request_.samples[index];
  return SampleFailure{.index = index,
                       .id = sample.id,
                       .source = source_name(sample.source),
                       .path = file_path(sample.source),
                       .error = *samples_[index].error};
}

std::vector<SampleFailure> Batch::failures() const {
  std::vector<SampleFailure> found;
  for (std::uint32_t i = 0; i < count(); ++i) {
    if (samples_[i].bad()) found.push_back(failure(i));
  }
  return found;
}

std::vector<std::uint32_t> Batch::take_unread(std::uint32_t most) {
  std::vector<std::uint32_t> taken;
  taken.reserve(std::min(most, count(SampleState::kUnread)));
  while (taken.size() < most && count(SampleState::kUnread) > 0) {
    std::uint32_t index = next_unread_;
    if (unread_again_.empty()) {
      ++next_unread_;
    } else {
      index = unread_again_.back();
      unread_again_.pop_back();
    }
    enter(index, SampleState::kReading);
    taken.push_back(index);
  }
  return taken;
}

void Batch::put_back_unread(std::uint32_t index) {
  enter(index, SampleState::kUnread);
  unread_again_.push_back(index);
}

void Batch::note_reading(std::uint32_t index, std::chrono::nanoseconds took) {
  samples_[index].fetch += took;
}

Result<void> Batch::lay_out(std::uint32_t index, const SourceInfo& source) {
  const SampleRequest& wanted = request_.samples[index];
  SampleRun& sample = samples_[index];
  if (sample.source) {
    if (source == *sample.source) return {};
    return changed_between(*sample.source, source);
  }
  sample.source = source;
  const RandomKey key{request_.seed, request_.epoch, wanted.draw ? SampleId{*wanted.draw} : wanted.id};
  MILLRACE_TRY(sample.geometry,
               draw_geometry(*request_.recipe, wanted.overrides, source, key, around_.limits.now().sample.side));
  sample.bytes = image_bytes(*request_.recipe, sample.geometry.output());
  if (layout_->places_each_alone()) {
    MILLRACE_TRY(sample.place, layout_->place(index, sample.geometry));
  }
  return {};
}

void Batch::hold(std::uint32_t index, const EncodedImage& image) {
  samples_[index].encoded = session_->parts.account->take(Resource::kEncoded, image.bytes.size());
  session_->parts.costs->read(Bytes{image.bytes.size()});
}

void Batch::defer(std::uint32_t index, std::optional<EncodedImage> image) {
  enter(index, SampleState::kDeferred);
  if (image) hold(index, *image);
  deferred_[index] = std::move(image);
}

void Batch::drop_deferred() {
  for (std::uint32_t i = 0; i < count(); ++i) {
    if (!deferred_[i]) continue;
    deferred_[i].reset();
    samples_[i].encoded.refund();
  }
}

Overflow Batch::overflow() const {
  std::vector<std::optional<Bytes>> sizes(count());
  for (std::uint32_t i = 0; i < count(); ++i) {
    if (!samples_[i].bad()) sizes[i] = samples_[i].bytes;
  }
  return millrace::overflow(*layout_, sizes, arena_->slot_bytes());
}

std::vector<SampleTask> Batch::place_deferred() {
  std::vector<SampleTask> tasks;
  Bytes end{0};
  for (std::uint32_t i = 0; i < count(); ++i) {
    SampleRun& sample = samples_[i];
    if (sample.bad()) continue;
    const Bytes begin = layout_->after(end);
    sample.place = SlotRange{begin.count, sample.bytes};
    end = begin + sample.bytes;
    if (!deferred_[i]) {
      put_back_unread(i);
      continue;
    }
    enter(i, SampleState::kWaiting);
    tasks.push_back(SampleTask{i, *std::exchange(deferred_[i], std::nullopt), sample.geometry, {}, {}});
  }
  slot_.tensor = end;
  placed_ = true;
  return tasks;
}

SampleTask Batch::wait(std::uint32_t index, EncodedImage image) {
  enter(index, SampleState::kWaiting);
  hold(index, image);
  return SampleTask{index, std::move(image), samples_[index].geometry, {}, {}};
}

void Batch::choose(std::uint32_t index, std::size_t backend) {
  SampleRun& sample = samples_[index];
  MILLRACE_CHECK(sample.state == SampleState::kWaiting);
  sample.error.reset();
  sample.backend = static_cast<std::uint32_t>(backend);
}

void Batch::defer(std::uint32_t index) {
  enter(index, SampleState::kDeferred);
}

void Batch::make(std::span<const SampleTask> tasks) {
  for (const SampleTask& task : tasks) enter(task.index, SampleState::kMaking);
}

void Batch::direct(SampleTask& task, std::span<const MemoryId> memories) const {
  const bool directly = arena_->memory() == kHostMemory ||
                        std::find(memories.begin(), memories.end(), arena_->memory()) != memories.end();
  const auto to = [&](const SlotRange& range) {
    return directly ? arena_->destination(lease_->slot, range) : arena_->stage(lease_->slot, range);
  };
  task.out = to(*samples_[task.index].place);
  task.further_outs.clear();
  for (std::size_t view = 1; view < request_.recipe->views.size(); ++view)
    task.further_outs.push_back(to(layout_->place_of_view(view, task.index, count())));
}

void Batch::not_taken(std::span<const SampleTask> tasks) {
  for (const SampleTask& task : tasks) enter(task.index, SampleState::kWaiting);
}

void Batch::note_making(std::uint32_t index, const SampleOutcome& outcome) {
  SampleRun& sample = samples_[index];
  sample.queued += outcome.queued;
  sample.decode += outcome.decode;
  sample.transform += outcome.transform;
  sample.unpacked = outcome.unpacked;
}

void Batch::try_elsewhere(std::uint32_t index, Error why) {
  enter(index, SampleState::kWaiting);
  SampleRun& sample = samples_[index];
  sample.tried |= 1U << sample.backend;
  sample.error = std::move(why);
}

void Batch::read_again(std::uint32_t index) {
  samples_[index].encoded.refund();
  samples_[index].from_file = true;
  put_back_unread(index);
}

void Batch::made(std::uint32_t index) {
  enter(index, SampleState::kMade);
  samples_[index].encoded.refund();
}

void Batch::give_up(std::uint32_t index, Error error) {
  enter(index, SampleState::kBad);
  if (error.code != Code::kCancelled) around_.counters.add(MetricId::samples_bad);
  SampleRun& sample = samples_[index];
  sample.error = std::move(error);
  sample.encoded.refund();
  if (!deferred_.empty()) deferred_[index].reset();
}

void InFlight::let_go() {
  if (!batch_) return;
  MILLRACE_CHECK(batch_->in_flight_ > 0);
  --batch_->in_flight_;
  if (batch_->in_flight_ == 0 && batch_->phase_ == Batch::Phase::kFailing)
    batch_->around_.owner.unused(std::move(batch_));
}

}  // namespace millrace
