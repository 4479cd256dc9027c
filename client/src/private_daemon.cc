#include "millrace/private_daemon.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <system_error>

#include "client/src/wire/address.h"
#include "client/src/wire/deadline.h"
#include "proto/base/unique_fd.h"

namespace millrace {
inline namespace client {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kListening = "listening on ";

bool executable(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

Result<std::string> find_program(const std::string& given) {
  const char* set = std::getenv("MILLRACE_DAEMON");
  const std::string named = !given.empty() ? given : set != nullptr ? set : "";
  if (!named.empty()) {
    if (executable(named)) return named;
    return Error{Code::kNotFound, "private daemon: " + named + " is not a program that this user may run"};
  }
  std::error_code error;
  const fs::path beside = fs::read_symlink("/proc/self/exe", error).parent_path() / "millraced";
  if (executable(beside)) return beside.string();
  const char* path = std::getenv("PATH");
  std::string_view folders = path != nullptr ? path : "";
  while (!folders.empty()) {
    const auto end = std::min(folders.find(':'), folders.size());
    const fs::path candidate = fs::path(folders.substr(0, end)) / "millraced";
    if (executable(candidate)) return candidate.string();
    folders.remove_prefix(std::min(end + 1, folders.size()));
  }
  return Error{Code::kNotFound, "private daemon: no millraced at " + beside.string() +
                                    " nor in $PATH; install it, or set MILLRACE_DAEMON to it"};
}

constexpr std::string_view kFolderPrefix = "millrace-";
constexpr std::string_view kLockName = "owner";  // locked as long as the folder's owner lives

// The folder's lock, or nothing if somebody has it. Taken under another name first, so that none is ever seen unlocked
// by mistake.
UniqueFd lock_folder(const fs::path& folder) {
  const fs::path fresh = folder / "owner.new";
  UniqueFd lock(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  if (!lock || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return UniqueFd();
  if (::rename(fresh.c_str(), (folder / kLockName).c_str()) != 0) return UniqueFd();
  return lock;
}

// Removes what owners that were killed have left behind.
void sweep(const fs::path& base) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(base, error)) {
    if (entry.path().filename().string().rfind(kFolderPrefix, 0) != 0) continue;
    struct stat status {};  // only what nobody else can have a hand in
    if (::lstat(entry.path().c_str(), &status) != 0 || !S_ISDIR(status.st_mode) || status.st_uid != ::geteuid() ||
        (status.st_mode & 0777) != 0700)
      continue;
    const UniqueFd lock(::open((entry.path() / kLockName).c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC));
    if (lock && ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) fs::remove_all(entry.path(), error);
  }
}

struct Folder {
  std::string path;
  UniqueFd lock;
};

// A fresh folder that only this user can enter, short enough for a socket's path.
Result<Folder> make_folder() {
  for (const char* base :
       std::initializer_list<const char*>{std::getenv("XDG_RUNTIME_DIR"), std::getenv("TMPDIR"), "/tmp"}) {
    if (base == nullptr || *base != '/') continue;
    std::string path = std::string(base) + "/" + std::string(kFolderPrefix) + "XXXXXX";
    if (!resolve_address(path + "/millrace.sock")) continue;
    sweep(base);
    if (::mkdtemp(path.data()) == nullptr) continue;
    UniqueFd lock = lock_folder(path);
    if (lock) return Folder{std::move(path), std::move(lock)};
  }
  return errno_error("private daemon: making a folder for its sockets in $XDG_RUNTIME_DIR, $TMPDIR or /tmp", errno);
}

Result<std::vector<std::string>> arguments_of(const std::string& program, const std::string& socket,
                                              const PrivateDaemonOptions& options) {
  std::vector<std::string> arguments{program, "--socket", socket};
  for (const std::string& root : options.roots) {
    std::error_code error;
    const fs::path absolute = fs::canonical(root, error);
    if (error) return errno_error("private daemon: root " + root, error.value());
    if (!fs::is_directory(absolute, error))
      return Error{Code::kInvalid, "private daemon: root " + root + " is no folder"};
    arguments.insert(arguments.end(), {"--root", absolute.string()});
  }
  if (options.lanes != 0) arguments.insert(arguments.end(), {"--lanes", std::to_string(options.lanes)});
  arguments.insert(arguments.end(), options.arguments.begin(), options.arguments.end());
  return arguments;
}

// This process's, without what its own service manager told it alone: there the daemon would answer in its owner's
// name.
std::vector<char*> environment_for_daemon() {
  std::vector<char*> environment;
  for (char** variable = ::environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const bool mine =
        text.starts_with("NOTIFY_SOCKET=") || text.starts_with("WATCHDOG_PID=") || text.starts_with("WATCHDOG_USEC=");
    if (!mine) environment.push_back(*variable);
  }
  environment.push_back(nullptr);
  return environment;
}

// Between fork and exec: async-signal-safe calls only.
[[noreturn]] void become(char* const* arguments, char* const* environment, int output, int log, pid_t parent) {
  ::setpgid(0, 0);  // a terminal's Ctrl-C is for the owner, who then stops this in order
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(126);  // it died before the line above
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
  ::execve(arguments[0], arguments, environment);
  ::_exit(127);
}

}  // namespace

struct PrivateDaemon::State {
  Folder folder;
  std::string socket;
  pid_t pid = -1;
  UniqueFd output;  // the daemon's stdout; its end is the daemon's end
  int status = 0;   // once pid is -1 again

  std::string log_path() const { return folder.path + "/log"; }

  ~State() {
    std::error_code ignored;
    if (!folder.path.empty()) fs::remove_all(folder.path, ignored);
  }
};

namespace {

// Whether there is something to read (or the end) before the deadline.
bool readable(int fd, Deadline deadline) {
  pollfd waited{fd, POLLIN, 0};
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(time_left(deadline));
    const int ready = ::poll(&waited, 1, static_cast<int>(std::min<std::int64_t>(left.count(), 1'000'000)));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

int exit_status(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string last_bytes_of(const std::string& path, std::streamoff most) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return {};
  const std::streamoff size = file.tellg();
  const std::streamoff from = std::max<std::streamoff>(0, size - most);
  std::string text(static_cast<std::size_t>(size - from), '\0');
  file.seekg(from);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, file.gcount())));
  return text;
}

// The line with which the daemon ended, its name left out.
std::string last_words(std::string log) {
  constexpr std::string_view kName = "millraced: ";
  log.resize(log.find_last_not_of(" \t\r\n") + 1);
  const std::size_t end_of_others = log.rfind('\n');
  if (end_of_others != std::string::npos) log.erase(0, end_of_others + 1);
  if (log.starts_with(kName)) log.erase(0, kName.size());
  return log.empty() ? "nothing" : log;
}

enum class Listening { kYes, kEnded, kTooLate };

Listening wait_listening(int output, Deadline deadline) {
  std::string text;
  while (readable(output, deadline)) {
    char bytes[512];
    const ssize_t count = ::read(output, bytes, sizeof bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return Listening::kEnded;
    text.append(bytes, static_cast<std::size_t>(count));
    const auto at = text.find(kListening);
    if (at != std::string::npos && text.find('\n', at) != std::string::npos) return Listening::kYes;
  }
  return Listening::kTooLate;
}

}  // namespace

PrivateDaemon::PrivateDaemon(std::unique_ptr<State> state) : state_(std::move(state)) {}
PrivateDaemon::PrivateDaemon(PrivateDaemon&&) noexcept = default;

PrivateDaemon& PrivateDaemon::operator=(PrivateDaemon&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}

PrivateDaemon::~PrivateDaemon() {
  if (state_) static_cast<void>(stop());
}

Result<PrivateDaemon> PrivateDaemon::start(const PrivateDaemonOptions& options) {
  MILLRACE_TRY(const std::string program, find_program(options.program));
  auto state = std::make_unique<State>();
  MILLRACE_TRY(state->folder, make_folder());
  state->socket = state->folder.path + "/millrace.sock";
  MILLRACE_TRY(std::vector<std::string> arguments, arguments_of(program, state->socket, options));

  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno_error("private daemon: a pipe", errno);
  state->output.reset(ends[0]);
  UniqueFd output(ends[1]);
  UniqueFd log(::open(state->log_path().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!log) return errno_error("private daemon: its log", errno);

  std::vector<char*> raw;
  for (std::string& argument : arguments) raw.push_back(argument.data());
  raw.push_back(nullptr);
  const std::vector<char*> environment = environment_for_daemon();
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return errno_error("private daemon: fork", errno);
  if (pid == 0) become(raw.data(), environment.data(), output.get(), log.get(), parent);
  state->pid = pid;
  output.reset();
  PrivateDaemon daemon(std::move(state));
  const Listening listening = wait_listening(daemon.state_->output.get(), deadline_after(options.timeout));
  if (listening == Listening::kYes) return daemon;
  const std::string why = listening == Listening::kEnded ? " ended before it listened" : " did not listen in time";
  return Error{Code::kUnavailable, "private daemon: " + program + why + "; it says: " + last_words(daemon.log())};
}

const std::string& PrivateDaemon::socket() const noexcept {
  return state_->socket;
}
std::int32_t PrivateDaemon::pid() const noexcept {
  return state_->pid;
}
std::string PrivateDaemon::log() const {
  return last_bytes_of(state_->log_path(), 64 << 10);
}

Result<int> PrivateDaemon::stop(std::chrono::milliseconds patience) {
  if (state_->pid < 0) return state_->status;
  ::kill(state_->pid, SIGTERM);
  const Deadline deadline = deadline_after(patience);
  bool ended = false;
  while (!ended && readable(state_->output.get(), deadline)) {
    char bytes[512];
    ended = ::read(state_->output.get(), bytes, sizeof bytes) == 0;
  }
  if (!ended) ::kill(state_->pid, SIGKILL);
  state_->status = exit_status(state_->pid);
  state_->pid = -1;
  return state_->status;
}

}  // namespace client
}  // namespace millrace
