#include "daemon/backend/fake/fake_backend.h"

#include <algorithm>
#include <utility>

#include "daemon/backend/cpu/decoders/decoder_table.h"
#include "daemon/backend/words.h"

namespace millrace {
namespace {

Error lost_error() {
  return {Code::kUnavailable, "the device is lost"};
}

}  // namespace

bool wants_fake(const Settings& settings) {
  return !settings.groups.of<FakeSettings>().options.empty();
}

Result<std::vector<std::unique_ptr<Backend>>> make_fake_backends(const Settings& settings,
                                                                 const BackendServices& services) {
  MILLRACE_TRY(const FakeOptions options, FakeOptions::parse(settings.groups.of<FakeSettings>().options));
  std::vector<std::unique_ptr<Backend>> one;
  one.push_back(FakeBackend::create(options, services.limits));
  return one;
}

std::unique_ptr<Backend> FakeBackend::create(const FakeOptions& options, InForce<Limits> limits) {
  std::unique_ptr<FakeBackend> backend(new FakeBackend(options, std::move(limits)));
  backend->device_ = std::thread([device = backend.get()] { device->run_device(); });
  return backend;
}

FakeBackend::FakeBackend(const FakeOptions& options, InForce<Limits> limits)
    : options_(options), limits_(std::move(limits)) {}

BackendInfo FakeBackend::info() const {
  return {.name = "fake",
          .device = "made-up device",
          .detail = options_.instant ? "decodes nothing" : "",
          .lanes = 1,
          .formats = decoded_formats(),
          .by_pin_only = !options_.first};
}

Result<void> FakeBackend::can_make(const SampleFacts& facts, const Recipe&) const {
  if (options_.first && facts.source.format != ImageFormat::kJpeg)
    return Error{Code::kUnsupported, "the made-up device decodes JPEG files alone"};
  return check_decoder(facts.source.format);
}

bool FakeBackend::try_submit(DecodeJob&& job) {
  {
    MutexLock lock(mutex_);
    if (work_.closed || in_it_ == options_.depth) return false;
    const Clock::time_point now = Clock::now();
    work_.decodes.push_back(Queued{std::move(job), now, now + options_.delay * (1 + accepted_ % 2)});
    ++accepted_;
    ++in_it_;
  }
  changed_.notify_all();
  return true;
}

void FakeBackend::shutdown() {
  std::call_once(shut_down_, [this] {
    {
      MutexLock lock(mutex_);
      work_.closed = true;
    }
    changed_.notify_all();
    if (device_.joinable()) device_.join();
  });
}

bool FakeBackend::closed() const {
  MutexLock lock(mutex_);
  return work_.closed;
}

void FakeBackend::run_device() {
  ImageWorkspace workspace;
  bool closed = false;
  while (!closed) {
    Work work = take_work();
    closed = work.closed;
    for (Queued& queued : work.decodes) made_.push_back(make(std::move(queued), workspace));
    complete_due(closed ? Clock::time_point::max() : Clock::now());
    recover();
  }
}

// What it had is lost, and nothing of it is here any more.
void FakeBackend::recover() {
  if (options_.back_after == 0 || refused_ < options_.back_after) return;
  samples_ = refused_ = 0;
  health_.ready();
}

// What came in; waits until there is something, or something made is due, or the end.
FakeBackend::Work FakeBackend::take_work() {
  const auto first =
      std::min_element(made_.begin(), made_.end(), [](const Made& a, const Made& b) { return a.due < b.due; });
  MutexLock lock(mutex_);
  while (work_.decodes.empty() && !work_.closed) {
    if (first == made_.end())
      changed_.wait(mutex_);
    else if (!changed_.wait_until(mutex_, first->due) || Clock::now() >= first->due)
      break;
  }
  Work work;
  std::swap(work.decodes, work_.decodes);
  work.closed = work_.closed;
  return work;
}

FakeBackend::Made FakeBackend::make(Queued queued, ImageWorkspace& workspace) {
  Made made{std::move(queued.job), {}, queued.due};
  for (const SampleTask& task : made.job.tasks) {
    SampleOutcome outcome{.index = task.index};
    const auto waited = Clock::now() - queued.since;
    outcome.error = make_sample(made.job, task, workspace, outcome);
    outcome.queued = waited;
    made.outcomes.push_back(std::move(outcome));
  }
  return made;
}

std::optional<Error> FakeBackend::make_sample(const DecodeJob& job, const SampleTask& task, ImageWorkspace& workspace,
                                              SampleOutcome& outcome) {
  if (health_.is_lost()) {
    ++refused_;
    return lost_error();
  }
  if (closed() || (job.stop && job.stop->stopped())) return cancelled_error();
  ++samples_;
  if (options_.lose_after != 0 && samples_ > options_.lose_after) {
    ++refused_;
    health_.lost("made to be lost");
    return lost_error();
  }
  if (options_.fail_every != 0 && samples_ % options_.fail_every == 0) return Error{Code::kInternal, "made to fail"};
  if (options_.instant) return std::nullopt;
  if (task.image.bytes.size() == 0 && task.image.kept) {
    outcome.read_again = true;
    return Error{Code::kUnsupported, "takes no kept forms"};
  }
  outcome = make_image(task, *job.recipe, limits_.now().sample, workspace, job.fidelity);
  return std::exchange(outcome.error, std::nullopt);
}

void FakeBackend::complete_due(Clock::time_point now) {
  if (health_.is_lost()) now = Clock::time_point::max();
  for (std::size_t i = made_.size(); i-- > 0;) {
    if (made_[i].due > now) continue;
    Made made = std::move(made_[i]);
    made_.erase(made_.begin() + static_cast<std::ptrdiff_t>(i));
    complete(std::move(made));
  }
}

// What a lost device had made is lost with it.
void FakeBackend::complete(Made made) {
  if (health_.is_lost()) {
    for (SampleOutcome& outcome : made.outcomes) outcome.error = lost_error();
  }
  {
    MutexLock lock(mutex_);
    --in_it_;  // before done(): who is told so may submit the next at once
  }
  made.job.done(std::move(made.job.tasks), std::move(made.outcomes));
}

}  // namespace millrace
