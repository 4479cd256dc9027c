#include "tests/support/cuda_driver/stream.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "tests/support/cuda_driver/capture.h"
#include "tests/support/cuda_driver/control.h"
#include "tests/support/cuda_driver/durations.h"
#include "tests/support/cuda_driver/illegal_access.h"
#include "tests/support/cuda_driver/settings.h"

namespace millrace::sim {
namespace {

thread_local bool host_function = false;

}  // namespace

cuda::CUresult health_of(const cuda::Context& context) {
  if (const cuda::CUresult lost = Control::get().device(context.device).lost; lost != 0) return lost;
  return context.sticky;
}

void stick(cuda::Context& context, cuda::CUresult result) {
  cuda::CUresult none = cuda::CUDA_SUCCESS;
  context.sticky.compare_exchange_strong(none, result);
}

bool in_host_function() {
  return host_function;
}

void run_host_function(cuda::CUhostFn function, void* data) {
  operation_tells_host();  // first: the function may wake a thread of the host
  host_function = true;
  function(data);
  host_function = false;
}

}  // namespace millrace::sim

namespace millrace::cuda {
namespace {

constexpr useconds_t kPause = 50;  // microseconds between two looks at a word that somebody else writes

std::chrono::nanoseconds time_of(const sim::Operation& operation) {
  return sim::duration_of(operation.what, operation.uses.empty() ? 0 : operation.uses.front().size);
}

}  // namespace

Stream::Stream(Context& context, int priority, std::uint32_t seed)
    : context_(context), priority_(priority), random_(seed), thread_([this] { work(); }) {}

Stream::~Stream() {
  thread_.join();
}

void Stream::push(sim::Operation operation) {
  if (sim::Captures::get().has(this)) return;
  MutexLock lock(mutex_);
  sim::Stamp stamp = sim::stamp(index_, operation.what);
  queue_.push_back({std::move(operation), std::move(stamp)});
  changed_.notify_all();
}

CUresult Stream::synchronise() {
  {
    MutexLock lock(mutex_);
    while ((!queue_.empty() || busy_) && !ended_) changed_.wait(mutex_);
  }
  sim::host_learns(sim::known_to_stream(index_));
  return sim::health_of(context_);
}

bool Stream::is_idle() const {
  MutexLock lock(mutex_);
  return queue_.empty() && !busy_;
}

bool Stream::has_use(sim::Span memory) const {
  const auto is_some = [&](const sim::Span& use) {
    return use.at < memory.at + memory.size && memory.at < use.at + use.size;
  };
  return std::ranges::any_of(busy_with_, is_some) || std::ranges::any_of(queue_, [&](const Entry& entry) {
           return std::ranges::any_of(entry.operation.uses, is_some);
         });
}

bool Stream::is_using(sim::Span memory) const {
  MutexLock lock(mutex_);
  return has_use(memory);
}

void Stream::wait_for_uses(sim::Span memory) {
  MutexLock lock(mutex_);
  while (has_use(memory) && !ended_) changed_.wait(mutex_);
}

void Stream::close() {
  MutexLock lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

void Stream::stop() {
  stopping_ = true;
  close();
}

bool Stream::wait_for_end(std::chrono::steady_clock::time_point deadline) {
  MutexLock lock(mutex_);
  while (!ended_)
    if (!changed_.wait_until(mutex_, deadline)) break;
  return ended_;
}

CUresult Stream::wait_until(const std::function<bool()>& ready) const {
  while (!ready()) {
    if (const CUresult result = sim::health_of(context_); result != CUDA_SUCCESS) return result;
    if (stopping_) return CUDA_SUCCESS;
    usleep(kPause);
  }
  return CUDA_SUCCESS;
}

bool Stream::take(Entry& entry) {
  MutexLock lock(mutex_);
  busy_ = false;
  busy_with_.clear();
  changed_.notify_all();
  while (queue_.empty() && !closed_) changed_.wait(mutex_);
  if (queue_.empty() || stopping_) return false;
  entry = std::move(queue_.front());
  queue_.pop_front();
  busy_ = true;
  busy_with_ = entry.operation.uses;
  return true;
}

void Stream::work() {
  pthread_setname_np(pthread_self(), "sim-stream");  // not its maker's, of whom it is none
  sim::wake_in_time();
  for (Entry entry; take(entry); entry = {}) {
    sim::begin_operation(entry.stamp);
    run(entry.operation);
    sim::end_operation();
  }
  MutexLock lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

unsigned Stream::next_delay_us() {
  const unsigned most = sim::settings().most_delay_us;
  if (turn_++ % 8 == 0) mood_ = static_cast<unsigned>(random_() >> 8) % 3;
  if (most == 0 || mood_ == 0) return 0;
  return static_cast<unsigned>(random_()) % most * (mood_ == 1 ? 1 : 100);
}

CUresult Stream::result_of(const sim::Operation& operation) {
  if (operation.fault.hangs) return wait_until([] { return false; });
  if (operation.fault.result != CUDA_SUCCESS) return operation.fault.result;
  return operation.touches_device ? sim::guarded(operation.run) : operation.run();
}

void Stream::run(const sim::Operation& operation) {
  if (const unsigned delay = next_delay_us(); delay != 0) usleep(delay);
  if (stopping_ || sim::health_of(context_) != CUDA_SUCCESS) return;
  sim::Engine* const engine = operation.fault.hangs ? nullptr : sim::engine_of(operation.engine, context_.device);
  if (engine != nullptr) engine->enter(priority_);
  const auto until = std::chrono::steady_clock::now() + time_of(operation);
  const CUresult result = result_of(operation);
  if (!stopping_) std::this_thread::sleep_until(until);
  if (engine != nullptr) engine->leave();
  if (sim::settings().trace)
    std::fprintf(stderr, "simulated CUDA: stream %zu: %s -> %d\n", index_, operation.what.c_str(), result);
  if (result != CUDA_SUCCESS) sim::stick(context_, result);
}

}  // namespace millrace::cuda

namespace millrace::sim {

using cuda::Stream;

Streams& Streams::get() {
  static auto* const streams = new Streams;
  return *streams;
}

void Streams::drop_ended() {
  std::erase_if(closed_, [](const auto& stream) { return stream.use_count() == 1 && stream->has_ended(); });
}

std::shared_ptr<Stream> Streams::make(cuda::Context& context, int priority) {
  MutexLock lock(mutex_);
  drop_ended();
  const std::uint32_t seed = settings().seed * 977 + ++created_;
  return std::make_shared<Stream>(context, priority, seed);
}

std::shared_ptr<Stream> Streams::default_of(cuda::Context& context) {
  {
    MutexLock lock(mutex_);
    if (const auto made = defaults_.find(&context); made != defaults_.end()) return made->second;
  }
  const std::shared_ptr<Stream> made = make(context, cuda::kLeastPriority);
  living_.add(made);
  MutexLock lock(mutex_);
  return defaults_.emplace(&context, made).first->second;
}

std::vector<std::shared_ptr<Stream>> Streams::all() const {
  std::vector<std::shared_ptr<Stream>> all = living_.all();
  MutexLock lock(mutex_);
  all.insert(all.end(), closed_.begin(), closed_.end());
  return all;
}

bool Streams::is_using(Span memory) const {
  return std::ranges::any_of(all(), [&](const auto& stream) { return stream->is_using(memory); });
}

void Streams::wait_for_uses(Span memory) {
  for (const auto& stream : all()) stream->wait_for_uses(memory);
  forget(memory.at, memory.size);
}

bool Streams::destroy(cuda::CUstream stream) {
  const std::shared_ptr<Stream> living = living_.remove(stream);
  if (living == nullptr) return false;
  living->close();
  Captures::get().drop(living.get());
  MutexLock lock(mutex_);
  drop_ended();
  closed_.push_back(living);
  return true;
}

void Streams::stop_all() {
  std::vector<std::shared_ptr<Stream>> all = living_.take_all();
  {
    MutexLock lock(mutex_);
    defaults_.clear();
    all.insert(all.end(), closed_.begin(), closed_.end());
    closed_.clear();
  }
  constexpr std::chrono::seconds kPatience{10};
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  for (const auto& stream : all) stream->stop();
  for (auto& stream : all) {
    if (!stream->is_this_thread() && stream->wait_for_end(deadline)) continue;
    MutexLock lock(mutex_);
    closed_.push_back(std::move(stream));  // kept for ever
  }
}

}  // namespace millrace::sim
