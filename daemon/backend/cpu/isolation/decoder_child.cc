#include "daemon/backend/cpu/isolation/decoder_child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include "daemon/backend/cpu/decoders/pixel_buffer.h"
#include "daemon/backend/cpu/isolation/sandbox.h"
#include "daemon/model/bytes/encoded_image.h"
#include "daemon/observe/cpu_time.h"
#include "proto/base/printable.h"
#include "proto/base/sanitized.h"

namespace millrace {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kPatienceAtStart{30};
constexpr std::chrono::milliseconds kGrace{100};  // for a decoder that sees the deadline by itself
constexpr std::chrono::milliseconds kLook{20};    // whether the answer is still wanted

struct Channel {
  UniqueFd ours, theirs;
};

// kUnavailable: the host lacks something that may be there in a moment.
Error not_started(const std::string& doing, int error) {
  const bool is_want = error == EAGAIN || error == ENOMEM || error == EMFILE || error == ENFILE;
  return {is_want ? Code::kUnavailable : Code::kInternal, errno_error(doing, error).message};
}

Result<Channel> make_channel() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return not_started("making a channel to a decoder", errno);
  Channel channel{UniqueFd(ends[0]), UniqueFd(ends[1])};
  // Above those that the process gets, so that handing one over overwrites no other.
  channel.theirs.reset(fcntl(channel.theirs.get(), F_DUPFD_CLOEXEC, kDecoderProgram + 1));
  if (!channel.theirs) return not_started("making a channel to a decoder", errno);
  return channel;
}

// No environment, no signal that this process ignores or blocks, no descriptor but the two and stderr, for its linker.
Result<pid_t> spawn(const DecoderProgram& program, int channel, int memory) {
  static const std::string kProgram = "/proc/self/fd/" + std::to_string(kDecoderProgram);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_adddup2(&actions, channel, kDecoderChannel);
  posix_spawn_file_actions_adddup2(&actions, memory, kDecoderMemory);
  posix_spawn_file_actions_adddup2(&actions, program.file->get(), kDecoderProgram);
  posix_spawn_file_actions_addclosefrom_np(&actions, kDecoderProgram + 1);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::string words[] = {"millrace-decoder", std::to_string(program.reach), std::to_string(DecoderChild::kData.count),
                         std::to_string(program.cpu_seconds)};
  char* const arguments[] = {words[0].data(), words[1].data(), words[2].data(), words[3].data(), nullptr};
  char* const environment[] = {nullptr};
  pid_t pid = 0;
  const int error = posix_spawn(&pid, kProgram.c_str(), &actions, &attributes, arguments, environment);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return not_started("starting " + program.path, error);
  return pid;
}

std::chrono::nanoseconds time_of(const rusage& usage) {
  return std::chrono::seconds(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         std::chrono::microseconds(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

std::string text_of(const DecoderReply& reply_untrusted) {
  const char* const end = std::find(std::begin(reply_untrusted.text), std::end(reply_untrusted.text), '\0');
  return printable(std::string_view(reply_untrusted.text, static_cast<std::size_t>(end - reply_untrusted.text)));
}

}  // namespace

Result<std::unique_ptr<DecoderChild>> DecoderChild::start(const DecoderProgram& program) {
  MILLRACE_TRY(Channel channel, make_channel());
  MILLRACE_TRY(SharedRoom room, SharedRoom::create());
  MILLRACE_TRY(const pid_t pid, spawn(program, channel.theirs.get(), room.fd()));
  channel.theirs.reset();
  std::unique_ptr<DecoderChild> child(new DecoderChild(std::move(channel.ours), std::move(room), pid));
  MILLRACE_TRY_VOID(child->let_begin());
  MILLRACE_TRY_VOID(child->wait_until_ready());
  return child;
}

DecoderChild::DecoderChild(UniqueFd channel, SharedRoom room, pid_t pid)
    : channel_(std::move(channel)),
      room_(std::move(room)),
      pid_(pid),
      statm_(open(("/proc/" + std::to_string(pid) + "/statm").c_str(), O_RDONLY | O_CLOEXEC)) {
  child_started(pid);
}

// It waits for this before it shuts itself in. One that has ended already is found out by waiting for it.
Result<void> DecoderChild::let_begin() {
  if (!statm_) return not_started("looking at a decoder's memory", errno);
  const DecoderRequest go;
  static_cast<void>(send(channel_.get(), &go, sizeof go, MSG_NOSIGNAL));
  return {};
}

Result<void> DecoderChild::wait_until_ready() {
  const DecoderAnswer ready = wait(Clock::now() + kPatienceAtStart);
  if (ready.end == DecoderAnswer::End::kLate)
    return Error{Code::kInternal, "millrace-decoder does not come up within 30 seconds"};
  if (ready.end == DecoderAnswer::End::kDied)
    return Error{Code::kInternal, "millrace-decoder ended as it began, " +
                                      (ready.signal != 0 ? "of signal " + std::to_string(ready.signal)
                                                         : "with status " + std::to_string(ready.status))};
  if (ready.reply_untrusted.version != kWireVersion)
    return Error{Code::kInternal, "millrace-decoder is of another version than this daemon: restart the daemon"};
  if (ready.reply_untrusted.code != 0)
    return Error{Code::kInternal, "millrace-decoder cannot be shut in: " + text_of(ready.reply_untrusted)};
  return {};
}

DecoderChild::~DecoderChild() {
  if (pid_ != 0) end(DecoderAnswer::End::kDied);
}

Result<void> DecoderChild::allow(Bytes data) {
  if (kSanitized || data == allowed_) return {};
  const rlimit limit{data.count, RLIM_INFINITY};
  if (prlimit(pid_, RLIMIT_DATA, &limit, nullptr) != 0)
    return Error{Code::kInternal, errno_error("setting how much memory a decoder may take", errno).message};
  allowed_ = data;
  return {};
}

// The sixth number of statm is data and stack in pages.
bool DecoderChild::is_small_again() {
  if (allowed_ == kData) return true;
  std::array<char, 256> text{};
  if (pread(statm_.get(), text.data(), text.size() - 1, 0) <= 0) return false;
  std::istringstream statm(text.data());
  std::uint64_t pages = 0;
  for (int i = 0; i < 6; ++i) statm >> pages;
  if (!statm || pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) > kData.count) return false;
  return allow(kData).has_value();
}

Result<void> DecoderChild::put(DecoderRequest& request, ByteView file_untrusted, Bytes room, Bytes data) {
  static constexpr std::byte kSlack[EncodedBytes::kReadSlack]{};
  request.file_bytes = file_untrusted.size();
  request.room_at = align_up({request.file_bytes + sizeof kSlack}, PixelBuffer::kSlack).count;
  request.room = room.count + 2 * PixelBuffer::kSlack;
  MILLRACE_TRY_VOID(room_.grow(request.room_at + request.room));
  MILLRACE_TRY_VOID(room_.write(0, file_untrusted));
  MILLRACE_TRY_VOID(room_.write(file_untrusted.size(), kSlack));
  return allow(std::max(data, kData));
}

Result<DecoderAnswer> DecoderChild::ask(DecoderRequest& request, ByteView file_untrusted, Bytes room, Bytes data,
                                        const kernels::Deadline& deadline) {
  const Clock::time_point begun = Clock::now();
  request.deadline_ns =
      std::chrono::duration_cast<std::chrono::nanoseconds>(deadline.time().time_since_epoch()).count();
  MILLRACE_TRY_VOID(put(request, file_untrusted, room, data));
  ++asked_;
  if (send(channel_.get(), &request, sizeof request, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof request))
    return end(DecoderAnswer::End::kDied);
  const DecoderAnswer answer = wait(std::min(deadline.time(), Clock::time_point::max() - kGrace) + kGrace, deadline);
  worked_ += Clock::now() - begun;
  return answer;
}

DecoderAnswer DecoderChild::wait(Clock::time_point until, const kernels::Deadline& deadline) {
  DecoderAnswer answer{.end = DecoderAnswer::End::kAnswered};
  for (;;) {
    if (deadline.is_unwanted()) return end(DecoderAnswer::End::kUnwanted);
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    pollfd ready{.fd = channel_.get(), .events = POLLIN};
    const int found = poll(&ready, 1, static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, kLook.count())));
    if (found < 0 && errno == EINTR) continue;
    if (found == 0 && Clock::now() < until) continue;
    if (found == 0) return end(DecoderAnswer::End::kLate);
    const ssize_t bytes = recv(channel_.get(), &answer.reply_untrusted, sizeof answer.reply_untrusted, MSG_DONTWAIT);
    if (bytes < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (bytes <= 0) return end(DecoderAnswer::End::kDied);
    // What is no reply is told as one that means nothing.
    if (bytes != static_cast<ssize_t>(sizeof answer.reply_untrusted)) answer.reply_untrusted.code = ~0U;
    return answer;
  }
}

std::chrono::nanoseconds DecoderChild::lap() {
  const std::optional<std::chrono::nanoseconds> now = process_cpu_time(pid_);
  return now ? *now - std::exchange(used_, *now) : std::chrono::nanoseconds{0};
}

// A process that is on its way out already ends of what it was going to.
DecoderAnswer DecoderChild::end(DecoderAnswer::End how) {
  DecoderAnswer answer{.end = how};
  int status = 0;
  rusage usage{};
  kill(pid_, SIGKILL);
  pid_t ended = 0;
  while ((ended = wait4(pid_, &status, 0, &usage)) < 0 && errno == EINTR) {
  }
  child_ended(pid_);
  if (ended == pid_ && at_end_ != nullptr) *at_end_ += std::max(time_of(usage) - used_, std::chrono::nanoseconds{0});
  pid_ = 0;
  if (WIFEXITED(status)) {
    answer.status = WEXITSTATUS(status);
  } else {
    answer.signal = WTERMSIG(status);
  }
  return answer;
}

}  // namespace millrace
