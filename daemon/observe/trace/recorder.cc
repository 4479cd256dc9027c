#include "daemon/observe/trace/recorder.h"

#include <algorithm>
#include <array>
#include <utility>

#include "proto/base/start_thread.h"

namespace millrace::trace {
namespace {

constexpr std::chrono::milliseconds kBetweenLooksAtBuffers{20};

constexpr std::array kGauges{MetricId::sessions,          MetricId::slots,
                             MetricId::slots_free,        MetricId::batches_in_flight,
                             MetricId::samples_in_flight, MetricId::encoded_in_flight,
                             MetricId::decoding_in_use,   MetricId::requests_in_use,
                             MetricId::segment_bytes};

}  // namespace

Recording::Recording(const Scope& scope, UserId by, FormatName format, std::chrono::nanoseconds length,
                     std::function<void()> told)
    : by_(by), until_(now() + length.count()), told_(std::move(told)), file_(scope, format, now()) {}

std::optional<std::string> Recording::take() {
  MutexLock lock(mutex_);
  if (parts_.empty()) return std::nullopt;
  std::string part = std::move(parts_.front());
  parts_.pop_front();
  untaken_ -= part.size();
  return part;
}

bool Recording::has_ended() const {
  MutexLock lock(mutex_);
  return has_ended_;
}

bool Recording::is_over(std::int64_t at) const {
  return at >= until_ || file_.session_has_ended() || is_over_.load(std::memory_order_relaxed);
}

bool Recording::has_room() {
  MutexLock lock(mutex_);
  return untaken_ < kMostUntaken;
}

void Recording::push() {
  if (file_.bytes() == 0) return;
  std::string part = file_.take();
  MutexLock lock(mutex_);
  untaken_ += part.size();
  parts_.push_back(std::move(part));
}

// A buffer that was full has the events before those that it lost.
void Recording::add(const ThreadEvents& events) {
  bool is_full = !has_room();
  for (std::size_t i = 0; i < events.events.size(); ++i) {
    if (is_full) {
      lost_ += events.events.size() - i;
      break;
    }
    if (lost_ > 0) file_.lost(std::exchange(lost_, 0), events.events[i].at);
    file_.add(events.tid, events.name, events.events[i]);
    if (file_.bytes() < kPartBytes) continue;
    push();
    is_full = !has_room();
  }
  lost_ += events.lost;
}

void Recording::write(bool is_last, std::int64_t at) {
  if (lost_ > 0 && (is_last || has_room())) file_.lost(std::exchange(lost_, 0), at);
  if (file_.take_was_lost()) was_lost_.store(true, std::memory_order_relaxed);
  if (is_last) file_.finish(at);
  const bool has_more = file_.bytes() > 0;
  push();
  if (is_last) {
    MutexLock lock(mutex_);
    has_ended_ = true;
  }
  if (has_more || is_last) told_();
}

Recorder::~Recorder() {
  stops_.store(true, std::memory_order_relaxed);
  if (thread_.joinable()) thread_.join();
}

Result<RecordingPtr> Recorder::begin(const Scope& scope, UserId by, std::chrono::nanoseconds length,
                                     std::function<void()> told) {
  {
    MutexLock lock(mutex_);
    const auto of_his = std::ranges::count(recordings_, by, [](const RecordingPtr& one) { return one->by(); });
    if (recordings_.size() >= kMostRecordings)
      return Error{Code::kExhausted, std::to_string(kMostRecordings) +
                                         " recordings run, and no more may: wait until one of them has ended"};
    if (static_cast<std::size_t>(of_his) >= kMostOfAUser)
      return Error{Code::kExhausted, std::to_string(kMostOfAUser) +
                                         " recordings of this user run, and no more may: wait until one has ended"};
    begin_recording();
    recordings_.push_back(std::make_shared<Recording>(scope, by, format_, length, std::move(told)));
    if (is_running_) return recordings_.back();
    is_running_ = true;
  }
  if (thread_.joinable()) thread_.join();  // it has nothing to do any more
  Result<std::thread> thread = start_thread("mr-trace", [this] { run(); });
  MutexLock lock(mutex_);
  if (!thread) {
    is_running_ = false;
    recordings_.clear();
    end_recording();
    return std::move(thread).error();
  }
  thread_ = *std::move(thread);
  return recordings_.back();
}

std::vector<RecordingPtr> Recorder::running() {
  MutexLock lock(mutex_);
  return {recordings_.begin(), recordings_.end()};
}

void Recorder::run() {
  for (;;) {
    std::this_thread::sleep_for(kBetweenLooksAtBuffers);
    const std::vector<RecordingPtr> recordings = running();
    if (stops_.load(std::memory_order_relaxed)) {
      for (const RecordingPtr& recording : recordings) recording->end();
    }
    look(recordings);
    MutexLock lock(mutex_);
    recordings_.remove_if([](const RecordingPtr& recording) { return recording->has_ended(); });
    if (!recordings_.empty()) continue;
    end_recording();
    is_running_ = false;
    return;
  }
}

// What was recorded before a recording's end is in it, so the end is looked for before the events. Names after events: of
// each session that has recorded something there is one.
void Recorder::look(const std::vector<RecordingPtr>& recordings) {
  const std::int64_t began = now();
  std::vector<bool> are_over;
  for (const RecordingPtr& recording : recordings) are_over.push_back(recording->is_over(began));
  std::vector<ThreadEvents> taken;
  take_events([&](ThreadEvents events) { taken.push_back(std::move(events)); });
  const std::vector<SessionNames> names = take_names();
  const std::vector<Gauge> now_in_use = gauges();
  const std::int64_t at = now();
  for (std::size_t i = 0; i < recordings.size(); ++i) {
    Recording& recording = *recordings[i];
    for (const SessionNames& one : names) recording.name(one);
    for (const ThreadEvents& events : taken) recording.add(events);
    for (const Gauge& gauge : now_in_use) recording.set(gauge, at);
    recording.write(are_over[i], at);
  }
}

std::vector<Gauge> Recorder::gauges() const {
  std::vector<Gauge> gauges;
  for (const MetricId id : kGauges) {
    const MetricRow& row = metric_table()[static_cast<std::size_t>(id)];
    gauges.push_back({.name = row.name,
                      .unit = row.unit == "bytes" ? CountUnit::kBytes : CountUnit::kCount,
                      .value = counters_.stored(id)});
  }
  return gauges;
}

}  // namespace millrace::trace
