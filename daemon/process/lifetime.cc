#include "daemon/process/lifetime.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <thread>
#include <utility>

#include "daemon/model/stopping.h"
#include "daemon/observe/log.h"
#include "proto/base/printable.h"
#include "proto/base/start_thread.h"

namespace millrace {

using namespace std::chrono_literals;

// A client that does not read keeps its connection for so long once everything is answered.
constexpr std::chrono::milliseconds kFlush{500};
constexpr std::chrono::seconds kAfterDraining{15};         // until the process has ended, the service manager is told
constexpr std::chrono::seconds kForThreads{10};            // of these: threads end their last work
constexpr std::chrono::milliseconds kLongReading{30'000};  // without anything read: worth a word
constexpr std::chrono::seconds kLookAtMemory{5};
constexpr Bytes kMuch = 32_MiB, kMuchAtWork = 128_MiB;  // of freed memory, beyond what the last trim left

namespace {

// Clients have all they will get; what is left is to wait for threads. A read from a file server that is gone may never
// come back, and the process ends without its thread. The store on disk is whole whenever the process ends.
void end_without_stuck_threads() {
  Result<std::thread> waiting = start_thread("mr-last-wait", [] {
    std::this_thread::sleep_for(kForThreads);
    log_error("stopped without threads that have not come back for " + std::to_string(kForThreads / 1s) +
              " s: the file system of a root may hang");
    std::_Exit(EXIT_SUCCESS);
  });
  if (waiting) waiting->detach();
}

// What the process has of memory and does not use: holes in malloc's arenas, and some that is not malloc's.
Bytes freed_memory() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t all = 0, resident = 0, shared = 0;
  if (!(statm >> all >> resident >> shared) || shared > resident) return {};
  const std::uint64_t own = (resident - shared) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const struct mallinfo2 used = ::mallinfo2();
  return {own - std::min<std::uint64_t>(own, used.uordblks + used.hblkhd)};
}

}  // namespace

Lifetime::~Lifetime() {
  if (trimmer_.joinable()) trimmer_.join();
}

void Lifetime::run(const Parts& parts) {
  parts_.emplace(parts);
  signals_.async_wait([this](boost::system::error_code error, int) {
    if (!error) drain();
  });
  wait_for_hangup();
  boost::asio::post(control_, [this] {
    supervisor_.ready(status());
    report();
    give_back_memory();
  });
  control_.run();
  end_without_stuck_threads();
}

// For the operator who looks at the service.
std::string Lifetime::status() const {
  if (stuck_) return "stuck: CPU lanes or a device give nothing back";
  std::string text = "serving " + printable(settings_.socket);
  if (const Draining draining = parts_->orders.draining(); draining.on)
    text = "draining, by order: " + std::to_string(draining.batches) + " batches are under way";
  for (const std::string& root : parts_->fetcher.missing_roots()) text += "; root not there: " + printable(root);
  if (const auto still = parts_->pipeline.stillness().reading; still >= kLongReading)
    text += "; reading has not moved for " + std::to_string(still / 1s) + " s";
  return text;
}

// Lanes that do not come back from an image long after its limit never will: a start anew helps, and the service manager
// hears nothing until it does that. Reading that stands still is the file systems' affair: the process could not even be
// killed while a server does not answer, and other roots go on.
bool Lifetime::lanes_stuck() {
  const Pipeline::Stillness still = parts_->pipeline.stillness();
  if (still.reading >= kLongReading)
    reading_line_.warn("reading has not moved for " + std::to_string(still.reading / 1s) +
                       " s: the file system of a root may hang; what was read before is still made");
  const bool was = std::exchange(stuck_, supervisor_.watchdog() && still.making > *supervisor_.watchdog());
  if (stuck_ && !was)
    log_error(
        "no CPU lane or device has given anything back for longer than limits.time_milliseconds allows: the "
        "service manager gets no sign of life from here on, and starts the daemon anew");
  return stuck_;
}

// The service manager hears from the control thread itself, so it notices when that one hangs.
void Lifetime::report() {
  if (!supervisor_.interval()) return;
  reports_.expires_after(*supervisor_.interval());
  reports_.async_wait([this](boost::system::error_code error) {
    if (error) return;
    if (lanes_stuck())
      supervisor_.stuck(status());
    else
      supervisor_.alive(draining_ ? "" : status());
    report();
  });
}

// What was freed goes back to the kernel. malloc keeps it otherwise: a flood of gRPC's messages leaves 140 MB of holes in
// its arenas. With batches under way lanes are about to need some of it, so it has to be more. On a thread of its own, for
// an arena is locked while it is gone through.
void Lifetime::give_back_memory() {
  memory_.expires_after(kLookAtMemory);
  memory_.async_wait([this](boost::system::error_code error) {
    if (error) return;
    if (!std::exchange(trimming_, true)) {
      const Bytes much = parts_->pipeline.under_way() == 0 ? kMuch : kMuchAtWork;
      if (trimmer_.joinable()) trimmer_.join();  // it has posted its last
      Result<std::thread> thread = start_thread("mr-trim", [this, much] {
        trim(much);
        boost::asio::post(control_, [this] { trimming_ = false; });
      });
      if (thread) trimmer_ = *std::move(thread);
      trimming_ = thread.has_value();
    }
    give_back_memory();
  });
}

void Lifetime::trim(Bytes much) {
  const Bytes freed = freed_memory();
  kept_ = std::min(kept_, freed);
  if (freed < kept_ + much) return;
  ::malloc_trim(0);
  kept_ = freed_memory();
}

// Again and again. A terminal that goes sends it as well: a daemon without a file to read is one that somebody started
// there.
void Lifetime::wait_for_hangup() {
  hangup_.async_wait([this](boost::system::error_code error, int) {
    if (error || draining_) return;
    if (!parts_->has_settings_file) return drain();
    supervisor_.reloading();
    parts_->orders.reload("SIGHUP", [this](const Result<FileReading>& read) {
      if (!read) log_warning("SIGHUP: " + read.error().message);
      supervisor_.reloaded();
    });
    wait_for_hangup();
  });
}

void Lifetime::end() {
  if (!draining_) drain();
  stop();
}

// No new work; what is under way is finished, within daemon.drain_seconds. A second signal ends the wait.
void Lifetime::drain() {
  log_info("stopping: finishing what is under way");
  draining_ = true;
  supervisor_.stopping("finishing what is under way",
                       std::chrono::ceil<std::chrono::seconds>(settings_.drain) + kAfterDraining);
  parts_->grpc.refuse(stopping());
  parts_->sessions.refuse_opening(stopping());
  parts_->grpc.leave_waiting();
  parts_->sessions.leave_waiting();
  parts_->pipeline.drain(stopping(), [this] { stop(); });
  patience_.expires_after(settings_.drain);
  patience_.async_wait([this](boost::system::error_code error) {
    if (!error) stop();
  });
  signals_.async_wait([this](boost::system::error_code error, int) {
    if (!error) stop();
  });
}

// Everything is answered; what is left is to flush it.
void Lifetime::stop() {
  if (stopping_) return;
  stopping_ = true;
  patience_.cancel();
  signals_.cancel();
  hangup_.cancel();
  parts_->grpc.shutdown(std::chrono::system_clock::now() + kFlush, [this] { control_.stop(); });
}

}  // namespace millrace
