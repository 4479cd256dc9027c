#include "tests/support/host/process.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include "proto/base/mutex.h"
#include "proto/base/unique_fd.h"

namespace millrace {

using Clock = std::chrono::steady_clock;

struct Process::State {
  pid_t pid = -1;
  UniqueFd pidfd, input, output, errors;
  UniqueFd stop;  // readable once the reader has to end, whichever processes still hold the pipes

  Mutex mutex;
  Condition changed;
  std::array<std::string, 2> text MILLRACE_GUARDED_BY(mutex);  // stdout, stderr
  bool closed MILLRACE_GUARDED_BY(mutex) = false;              // both pipes are at their end
  std::optional<int> status MILLRACE_GUARDED_BY(mutex);        // once reaped
  std::thread reader;

  void read_all();
  bool read_some(int fd, std::size_t which);
  std::optional<int> reap(Clock::time_point deadline);
};

namespace {

constexpr std::chrono::seconds kLastWords{
    1};  // for output still in the pipe after the end; a child of the child may keep it open

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

int milliseconds_until(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return left < 0 ? 0 : static_cast<int>(left);
}

struct Pipe {
  UniqueFd read, write;
};

Pipe make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail("pipe2");
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// A socket pair, because writing to one whose reader is gone need not raise SIGPIPE.
Pipe make_input() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) fail("socketpair");
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

std::vector<std::string> environment_of(const ProcessSpec& spec) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string name = std::string(*entry).substr(0, std::string(*entry).find('='));
    bool replaced = false;
    for (const auto& [key, value] : spec.env) replaced |= key == name;
    if (!replaced) result.emplace_back(*entry);
  }
  for (const auto& [key, value] : spec.env) result.push_back(key + "=" + value);
  return result;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

// What the child needs between fork and exec, made beforehand: only async-signal-safe calls are allowed there.
struct Launch {
  std::vector<std::string> argv_text, env_text;
  std::vector<char*> argv, env;
  const char* folder = nullptr;
  bool change_user = false;
  uid_t user = 0;
  pid_t parent = 0;
  int stdin_fd = -1, stdout_fd = -1, stderr_fd = -1, report_fd = -1;
};

bool enter(const Launch& launch) {
  if (dup2(launch.stdin_fd, 0) < 0 || dup2(launch.stdout_fd, 1) < 0 || dup2(launch.stderr_fd, 2) < 0) return false;
  if (launch.folder != nullptr && chdir(launch.folder) != 0) return false;
  if (launch.change_user && (setgroups(0, nullptr) != 0 || setgid(launch.user) != 0 || setuid(launch.user) != 0))
    return false;
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return false;  // after setuid, which clears it
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  return getppid() == launch.parent;
}

[[noreturn]] void become(const Launch& launch) {
  if (enter(launch)) execvpe(launch.argv[0], launch.argv.data(), launch.env.data());
  const int error = errno;
  [[maybe_unused]] const ssize_t written = write(launch.report_fd, &error, sizeof error);
  _exit(127);
}

}  // namespace

bool Process::State::read_some(int fd, std::size_t which) {
  std::array<char, 16384> buffer;
  const ssize_t count = read(fd, buffer.data(), buffer.size());
  if (count < 0 && errno == EINTR) return true;
  if (count <= 0) return false;
  MutexLock lock(mutex);
  text[which].append(buffer.data(), static_cast<std::size_t>(count));
  changed.notify_all();
  return true;
}

void Process::State::read_all() {
  std::array<pollfd, 3> waiting{{{output.get(), POLLIN, 0}, {errors.get(), POLLIN, 0}, {stop.get(), POLLIN, 0}}};
  while (waiting[0].fd >= 0 || waiting[1].fd >= 0) {
    if (poll(waiting.data(), waiting.size(), -1) < 0) continue;  // EINTR
    if (waiting[2].revents != 0) break;
    for (std::size_t i = 0; i < 2; ++i)
      if (waiting[i].fd >= 0 && waiting[i].revents != 0 && !read_some(waiting[i].fd, i)) waiting[i].fd = -1;
  }
  MutexLock lock(mutex);
  closed = true;
  changed.notify_all();
}

std::optional<int> Process::State::reap(Clock::time_point deadline) {
  {
    MutexLock lock(mutex);
    if (status) return status;
  }
  pollfd ended{pidfd.get(), POLLIN, 0};
  while (poll(&ended, 1, milliseconds_until(deadline)) < 0 && errno == EINTR) {
  }
  if (ended.revents == 0) return std::nullopt;
  MutexLock lock(mutex);
  int raw = 0;
  if (!status && waitpid(pid, &raw, 0) == pid) status = WIFSIGNALED(raw) ? 128 + WTERMSIG(raw) : WEXITSTATUS(raw);
  return status;
}

Process Process::spawn(const ProcessSpec& spec) {
  Pipe input = make_input(), output = make_pipe(), errors = make_pipe(), report = make_pipe();
  Launch launch{.argv_text = spec.argv,
                .env_text = environment_of(spec),
                .argv = {},
                .env = {},
                .folder = spec.folder.empty() ? nullptr : spec.folder.c_str(),
                .change_user = spec.user.has_value(),
                .user = spec.user.value_or(0),
                .parent = getpid(),
                .stdin_fd = input.read.get(),
                .stdout_fd = output.write.get(),
                .stderr_fd = errors.write.get(),
                .report_fd = report.write.get()};
  launch.argv = pointers_to(launch.argv_text);
  launch.env = pointers_to(launch.env_text);
  if (spec.argv.empty()) throw std::runtime_error("spawn: no program named");

  auto state = std::make_unique<State>();
  state->pid = fork();
  if (state->pid < 0) fail("fork");
  if (state->pid == 0) become(launch);
  report.write = UniqueFd();
  int error = 0;
  if (read(report.read.get(), &error, sizeof error) == sizeof error) {
    waitpid(state->pid, nullptr, 0);
    errno = error;
    fail("cannot start " + spec.argv[0]);
  }
  state->pidfd = UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, state->pid, 0)));
  if (!state->pidfd) fail("pidfd_open");
  state->stop = UniqueFd(eventfd(0, EFD_CLOEXEC));
  if (!state->stop) fail("eventfd");
  state->input = std::move(input.write);
  state->output = std::move(output.read);
  state->errors = std::move(errors.read);
  output.write = UniqueFd();
  errors.write = UniqueFd();
  state->reader = std::thread([raw = state.get()] { raw->read_all(); });
  return Process(std::move(state));
}

Process::Process(std::unique_ptr<State> state) : state_(std::move(state)) {}
Process::Process(Process&&) noexcept = default;

Process& Process::operator=(Process&& other) noexcept {
  Process ended(std::move(*this));  // its destructor kills and reaps
  state_ = std::move(other.state_);
  return *this;
}

Process::~Process() {
  if (!state_) return;
  kill(SIGKILL);
  state_->reap(Clock::now() + kPatience);
  eventfd_write(state_->stop.get(), 1);
  state_->reader.join();
}

pid_t Process::pid() const {
  return state_->pid;
}

std::optional<std::string> Process::wait_for(const std::string& text, std::chrono::milliseconds limit) const {
  const auto deadline = Clock::now() + limit;
  MutexLock lock(state_->mutex);
  for (;;) {
    for (const std::string& stream : state_->text) {
      const std::size_t found = stream.find(text);
      const std::size_t end = found == std::string::npos ? found : stream.find('\n', found);
      if (end == std::string::npos) continue;
      const std::size_t begin = stream.rfind('\n', found);
      const std::size_t first = begin == std::string::npos ? 0 : begin + 1;
      return stream.substr(first, end - first);
    }
    if (state_->closed || !state_->changed.wait_until(state_->mutex, deadline)) return std::nullopt;
  }
}

bool Process::say(const std::string& line) const {
  const std::string whole = line + "\n";
  return send(state_->input.get(), whole.data(), whole.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(whole.size());
}

void Process::kill(int signal) const {
  syscall(SYS_pidfd_send_signal, state_->pidfd.get(), signal, nullptr, 0);
}

std::optional<int> Process::wait(std::chrono::milliseconds limit) const {
  const auto deadline = Clock::now() + limit;
  const std::optional<int> status = state_->reap(deadline);
  if (!status) return std::nullopt;
  const auto last_words = std::min(deadline, Clock::now() + kLastWords);
  MutexLock lock(state_->mutex);
  while (!state_->closed && state_->changed.wait_until(state_->mutex, last_words)) {
  }
  return status;
}

bool Process::running() const {
  return !state_->reap(Clock::now()).has_value();
}

std::string Process::output() const {
  MutexLock lock(state_->mutex);
  return state_->text[0];
}

std::string Process::errors() const {
  MutexLock lock(state_->mutex);
  return state_->text[1];
}

std::string bin_folder() {
  if (const char* named = std::getenv("MILLRACE_BIN_DIR")) return named;
  return (std::filesystem::canonical("/proc/self/exe").parent_path().parent_path() / "bin").string();
}

std::string tests_folder() {
  if (const char* named = std::getenv("MILLRACE_TESTS_DIR")) return named;
  return (std::filesystem::canonical("/proc/self/exe").parent_path().parent_path() / "tests").string();
}

}  // namespace millrace
