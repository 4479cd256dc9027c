#include "daemon/backend/device_host/channel.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <thread>

#include "proto/base/printable.h"
#include "proto/base/sockets/socket_message.h"

namespace millrace::device_host {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kPatienceAtEnd{5};

Error no_descriptors(std::string_view program) {
  return Error{Code::kExhausted, errno_error("making a channel to " + std::string(program), errno).message};
}

}  // namespace

Result<Channel> make_channel(std::string_view program) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return no_descriptors(program);
  Channel channel{UniqueFd(ends[0]), UniqueFd(ends[1])};
  channel.theirs.reset(fcntl(channel.theirs.get(), F_DUPFD_CLOEXEC, kAbove));
  if (!channel.theirs) return no_descriptors(program);
  return channel;
}

Result<Staging> Staging::create(std::string_view program, Bytes bytes) {
  const std::string name(program);
  const UniqueFd low(memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  UniqueFd memory(low ? fcntl(low.get(), F_DUPFD_CLOEXEC, kAbove) : -1);
  if (!memory) return no_descriptors(program);
  const int error = posix_fallocate(memory.get(), 0, static_cast<off_t>(bytes.count));
  if (error != 0) return Error{Code::kExhausted, errno_error("taking the staging memory of " + name, error).message};
  if (fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return Error{Code::kInternal, errno_error("sealing the staging memory of " + name, errno).message};
  void* const at = mmap(nullptr, bytes.count, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
  if (at == MAP_FAILED)
    return Error{Code::kExhausted, errno_error("mapping the staging memory of " + name, errno).message};
  return Staging(std::move(memory), static_cast<std::byte*>(at), bytes);
}

Staging::~Staging() {
  if (at_ != nullptr) munmap(at_, bytes_.count);
}

std::string find_program(const std::string& path, const std::string& name) {
  if (!path.empty()) return path;
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  const fs::path beside = folder / name;
  return fs::exists(beside, error) ? beside.string() : (folder / "../libexec/millrace" / name).string();
}

Result<pid_t> start_process(const std::string& program, std::span<const Handed> descriptors) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  int end = STDERR_FILENO + 1;
  for (const Handed& handed : descriptors) {
    posix_spawn_file_actions_adddup2(&actions, handed.from, handed.to);
    end = std::max(end, handed.to + 1);
  }
  posix_spawn_file_actions_addclosefrom_np(&actions, end);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::string name = fs::path(program).filename().string();
  char* const arguments[] = {name.data(), nullptr};
  pid_t pid = 0;
  const int error = posix_spawn(&pid, program.c_str(), &actions, &attributes, arguments, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return Error{Code::kInternal, errno_error("starting " + program, error).message};
  return pid;
}

void reap(pid_t pid) {
  kill(pid, SIGKILL);
  const Clock::time_point until = Clock::now() + kPatienceAtEnd;
  siginfo_t info{};
  while (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG) == 0 && info.si_pid != pid &&
         Clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

bool send_bytes(int socket, std::span<const std::byte> message) {
  ssize_t sent = 0;
  do {
    sent = send(socket, message.data(), message.size(), MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(message.size());
}

Heard receive_bytes(int socket, std::span<std::byte> message, Clock::time_point until, UniqueFd* descriptor) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    pollfd ready{.fd = socket, .events = POLLIN};
    const int found = poll(&ready, 1, static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 1 << 30)));
    if (found < 0 && errno == EINTR) continue;
    if (found == 0) return Heard::kLate;
    if (found < 0) return Heard::kEnd;
    ReceivedMessage received = receive_message(socket, message, 1, MSG_DONTWAIT);
    if (received.bytes < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (descriptor != nullptr && !received.descriptors.empty()) *descriptor = std::move(received.descriptors.front());
    return received.bytes == static_cast<ssize_t>(message.size()) ? Heard::kMessage : Heard::kEnd;
  }
}

std::string text_of(std::span<const char> text_untrusted) {
  const auto end = std::find(text_untrusted.begin(), text_untrusted.end(), '\0');
  return printable(std::string_view(text_untrusted.data(), static_cast<std::size_t>(end - text_untrusted.begin())));
}

Error error_of(std::uint32_t code, std::span<const char> text_untrusted, std::string_view program) {
  for (const Code known : {Code::kUnsupported, Code::kExhausted, Code::kNotFound, Code::kUnavailable}) {
    if (code == static_cast<std::uint32_t>(known)) return {known, text_of(text_untrusted)};
  }
  return {Code::kUnavailable, std::string(program) + ": " + text_of(text_untrusted)};
}

}  // namespace millrace::device_host
