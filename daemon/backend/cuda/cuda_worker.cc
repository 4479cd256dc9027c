#include "daemon/backend/cuda/cuda_worker.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <thread>
#include <utility>

#include "proto/base/printable.h"
#include "proto/base/socket_message.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kPatienceWithList{20}, kPatienceAtEnd{5};
constexpr int kAbove = 32;  // descriptors that are handed over lie here, so that none overwrites another one
static_assert(cuda_lane_staging(kMostCudaLanes - 1) < kAbove);

Error no_descriptors() {
  return Error{Code::kExhausted, errno_error("making a channel to millrace-cuda", errno).message};
}

struct Channel {
  UniqueFd ours, theirs;
};

Result<Channel> make_channel() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return no_descriptors();
  Channel channel{UniqueFd(ends[0]), UniqueFd(ends[1])};
  channel.theirs.reset(fcntl(channel.theirs.get(), F_DUPFD_CLOEXEC, kAbove));
  if (!channel.theirs) return no_descriptors();
  return channel;
}

// Its pages are taken now, so that want of memory is an error here and no signal later; and nobody makes it shorter.
Result<UniqueFd> make_staging(std::uint64_t bytes) {
  const UniqueFd low(memfd_create("millrace-cuda", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  UniqueFd memory(low ? fcntl(low.get(), F_DUPFD_CLOEXEC, kAbove) : -1);
  if (!memory) return no_descriptors();
  const int error = posix_fallocate(memory.get(), 0, static_cast<off_t>(bytes));
  if (error != 0) return Error{Code::kExhausted, errno_error("taking a GPU's staging memory", error).message};
  if (fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return Error{Code::kInternal, errno_error("sealing a GPU's staging memory", errno).message};
  return memory;
}

Result<std::byte*> map(int descriptor, std::uint64_t bytes) {
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (at == MAP_FAILED) return Error{Code::kExhausted, errno_error("mapping a GPU's staging memory", errno).message};
  return static_cast<std::byte*>(at);
}

// A descriptor of ours, and its number in the process.
struct Handed {
  int from, to;
};

// With this process's environment, which is where a driver is told how to be.
Result<pid_t> spawn(const std::string& program, std::span<const Handed> descriptors) {
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
  std::string name = "millrace-cuda";
  char* const arguments[] = {name.data(), nullptr};
  pid_t pid = 0;
  const int error = posix_spawn(&pid, program.c_str(), &actions, &attributes, arguments, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return Error{Code::kInternal, errno_error("starting " + program, error).message};
  return pid;
}

template <class Message>
bool send_all(int socket, const Message& message) {
  ssize_t sent = 0;
  do {
    sent = send(socket, &message, sizeof message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(sizeof message);
}

enum class Heard : std::uint8_t { kMessage, kEnd, kLate };

// The next message; one of another length counts as the end. `descriptor`: what may come with it.
template <class Message>
Heard receive(int socket, Message& message, Clock::time_point until, UniqueFd* descriptor = nullptr) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    pollfd ready{.fd = socket, .events = POLLIN};
    const int found = poll(&ready, 1, static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 1 << 30)));
    if (found < 0 && errno == EINTR) continue;
    if (found == 0) return Heard::kLate;
    if (found < 0) return Heard::kEnd;
    ReceivedMessage received = receive_message(socket, std::as_writable_bytes(std::span(&message, 1)), 1, MSG_DONTWAIT);
    if (received.bytes < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (descriptor != nullptr && !received.descriptors.empty()) *descriptor = std::move(received.descriptors.front());
    return received.bytes == static_cast<ssize_t>(sizeof message) ? Heard::kMessage : Heard::kEnd;
  }
}

template <std::size_t kSize>
std::string text_in(const char (&text_untrusted)[kSize]) {
  const char* const end = std::find(std::begin(text_untrusted), std::end(text_untrusted), '\0');
  return printable(std::string_view(text_untrusted, static_cast<std::size_t>(end - text_untrusted)));
}

Error error_in(std::uint32_t code, std::string text) {
  for (const Code known : {Code::kUnsupported, Code::kExhausted, Code::kNotFound, Code::kUnavailable}) {
    if (code == static_cast<std::uint32_t>(known)) return {known, std::move(text)};
  }
  return {Code::kUnavailable, "millrace-cuda: " + text};
}

Error other_version() {
  return {Code::kUnsupported, "millrace-cuda is of another version than this daemon: restart the daemon"};
}

Gpu gpu_of(const CudaReady& ready) {
  Gpu gpu{.ordinal = ready.ordinal,
          .name = text_in(ready.name),
          .memory = {ready.memory_bytes},
          .major = ready.major,
          .minor = ready.minor,
          .multiprocessors = ready.multiprocessors,
          .driver_version = ready.driver_version};
  std::copy(std::begin(ready.uuid), std::end(ready.uuid), gpu.uuid.begin());
  return gpu;
}

// Sends what has a number, and waits for the answer to that number.
template <class Order>
Result<UniqueFd> ask_process(int socket, const Order& order, std::chrono::milliseconds patience) {
  if (!send_all(socket, order)) return Error{Code::kUnavailable, "the process that has the GPU is gone"};
  CudaDone done;
  UniqueFd descriptor;
  const Heard heard = receive(socket, done, Clock::now() + patience, &descriptor);
  if (heard == Heard::kLate)
    return Error{Code::kUnavailable, "the GPU does not answer within " + std::to_string(patience.count()) + " ms"};
  if (heard == Heard::kEnd || done.number != order.number)
    return Error{Code::kUnavailable, "the process that has the GPU ended"};
  if (done.code != 0) return error_in(done.code, text_in(done.text));
  return descriptor;
}

// A while only: one that hangs in a driver may be there for long.
void reap(pid_t pid) {
  kill(pid, SIGKILL);
  const Clock::time_point until = Clock::now() + kPatienceAtEnd;
  siginfo_t info{};
  while (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG) == 0 && info.si_pid != pid &&
         Clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// What it says until the list ends.
Result<std::vector<Gpu>> hear_gpus(int control) {
  std::vector<Gpu> gpus;
  for (;;) {
    CudaReady ready;
    const Heard heard = receive(control, ready, Clock::now() + kPatienceWithList);
    if (heard == Heard::kLate)
      return Error{Code::kUnsupported, "the driver does not say within 20 seconds which GPUs there are"};
    if (heard == Heard::kEnd)
      return Error{Code::kUnsupported, "millrace-cuda ended before it had said which GPUs there are"};
    if (ready.code == kCudaListEnds) return gpus;
    if (ready.version != kCudaWireVersion) return other_version();
    if (ready.code != 0) return error_in(ready.code, text_in(ready.text));
    gpus.push_back(gpu_of(ready));
  }
}

}  // namespace

std::string cuda_program(const std::string& path) {
  if (!path.empty()) return path;
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  const fs::path beside = folder / "millrace-cuda";
  return fs::exists(beside, error) ? beside.string() : (folder / "../libexec/millrace/millrace-cuda").string();
}

Result<std::vector<Gpu>> list_gpus(const std::string& program) {
  MILLRACE_TRY(Channel channel, make_channel());
  const Handed control[] = {{channel.theirs.get(), kCudaControl}};
  MILLRACE_TRY(const pid_t pid, spawn(program, control));
  channel.theirs.reset();
  const bool sent = send_all(channel.ours.get(), CudaHello{.work = CudaWork::kList});
  Result<std::vector<Gpu>> gpus =
      sent ? hear_gpus(channel.ours.get()) : Error{Code::kInternal, program + " ended as it began"};
  reap(pid);
  return gpus;
}

CudaLaneChannel::CudaLaneChannel(CudaLaneChannel&& other) noexcept
    : socket_(std::move(other.socket_)), staging_(std::exchange(other.staging_, nullptr)), layout_(other.layout_) {}

CudaLaneChannel::~CudaLaneChannel() {
  if (staging_ != nullptr) munmap(staging_, layout_.size());
}

Result<void> CudaLaneChannel::ask(CudaBatch& batch, std::chrono::milliseconds patience) {
  batch.number = ++asked_;
  MILLRACE_TRY(const UniqueFd none, ask_process(socket_.get(), batch, patience));
  return {};
}

CudaMemoryChannel::CudaMemoryChannel(CudaMemoryChannel&& other) noexcept
    : socket_(std::move(other.socket_)), staging_(std::exchange(other.staging_, nullptr)) {}

CudaMemoryChannel::~CudaMemoryChannel() {
  if (staging_ != nullptr) munmap(staging_, kCudaMemoryStagingBytes.count);
}

Result<UniqueFd> CudaMemoryChannel::ask(CudaMemoryOrder order, std::chrono::milliseconds patience) {
  order.number = ++asked_;
  Result<UniqueFd> answer = ask_process(socket_.get(), order, patience);
  if (!answer && answer.error().code == Code::kUnavailable) why_lost_ = answer.error().message;
  return answer;
}

Result<std::shared_ptr<CudaWorker>> CudaWorker::start(const std::string& program, const CudaWorkerOrder& order) {
  const CudaStaging layout{order.encoded.count, order.tensors.count};
  MILLRACE_TRY(Channel control, make_channel());
  std::vector<Handed> handed{{control.theirs.get(), kCudaControl}};
  std::vector<UniqueFd> theirs;
  MILLRACE_TRY(Channel memory, make_channel());
  MILLRACE_TRY(UniqueFd moved, make_staging(kCudaMemoryStagingBytes.count));
  MILLRACE_TRY(std::byte * moved_at, map(moved.get(), kCudaMemoryStagingBytes.count));
  CudaMemoryChannel memory_channel(std::move(memory.ours), moved_at);
  handed.push_back({memory.theirs.get(), kCudaMemorySocket});
  handed.push_back({moved.get(), kCudaMemoryStaging});
  std::vector<CudaLaneChannel> lanes;
  for (std::uint32_t i = 0; i < order.lanes; ++i) {
    MILLRACE_TRY(Channel channel, make_channel());
    MILLRACE_TRY(UniqueFd staging, make_staging(layout.size()));
    MILLRACE_TRY(std::byte * at, map(staging.get(), layout.size()));
    lanes.emplace_back(std::move(channel.ours), at, layout);
    handed.push_back({channel.theirs.get(), cuda_lane_socket(i)});
    handed.push_back({staging.get(), cuda_lane_staging(i)});
    theirs.push_back(std::move(channel.theirs));
    theirs.push_back(std::move(staging));
  }
  MILLRACE_TRY(const pid_t pid, spawn(program, handed));
  control.theirs.reset();
  theirs.clear();
  return std::shared_ptr<CudaWorker>(
      new CudaWorker(std::move(control.ours), std::move(memory_channel), std::move(lanes), pid));
}

CudaWorker::CudaWorker(UniqueFd control, CudaMemoryChannel memory, std::vector<CudaLaneChannel> lanes, pid_t pid)
    : control_(std::move(control)), memory_(std::move(memory)), lanes_(std::move(lanes)), pid_(pid) {}

Result<void> CudaWorker::greet(const CudaUuid& gpu, const CudaWorkerOrder& order, std::chrono::milliseconds patience) {
  CudaHello hello{.work = CudaWork::kServe,
                  .lanes = order.lanes,
                  .encoded_bytes = order.encoded.count,
                  .tensor_bytes = order.tensors.count,
                  .device_bytes = order.device.count};
  std::copy(gpu.begin(), gpu.end(), std::begin(hello.uuid));
  CudaReady ready;
  const Heard heard =
      send_all(control_.get(), hello) ? receive(control_.get(), ready, Clock::now() + patience) : Heard::kEnd;
  if (heard == Heard::kLate)
    return Error{Code::kUnavailable,
                 "millrace-cuda does not come up within " + std::to_string(patience.count() / 1000) + " seconds"};
  if (heard == Heard::kEnd) return Error{Code::kUnavailable, "millrace-cuda ended as it began"};
  if (ready.version != kCudaWireVersion) return other_version();
  if (ready.code != 0) return error_in(ready.code, text_in(ready.text));
  return {};
}

CudaWorker::~CudaWorker() {
  end();
  const Clock::time_point until = Clock::now() + kPatienceAtEnd;
  while (!is_gone() && Clock::now() < until) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void CudaWorker::end() {
  MutexLock lock(mutex_);
  if (gone_) return;
  ended_ = true;
  kill(pid_, SIGKILL);
}

bool CudaWorker::is_gone() {
  MutexLock lock(mutex_);
  if (gone_) return true;
  siginfo_t info{};
  const int waited = waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG);
  if (waited != 0) return gone_ = errno == ECHILD;  // somebody else has taken note of its end
  if (info.si_pid != pid_) return false;
  code_ = info.si_code;
  status_ = info.si_status;
  return gone_ = true;
}

std::string CudaWorker::how_it_ended() const {
  MutexLock lock(mutex_);
  if (!gone_ || ended_) return "";
  return (code_ == CLD_EXITED ? "with status " : "of signal ") + std::to_string(status_);
}

}  // namespace millrace
