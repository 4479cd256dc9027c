#include "daemon/door/sleep_breaker.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <memory>
#include <semaphore>
#include <string>
#include <thread>
#include <utility>

#include "proto/base/unique_fd.h"

namespace millrace {
namespace {

constexpr int kSignal = SIGURG;            // nobody else sends it here
constexpr long kLongestSleep = 1'000'000;  // nanoseconds

// Without SA_RESTART: the call that sleeps has to end.
void install_handler() {
  static const bool installed = [] {
    struct sigaction action {};
    action.sa_handler = [](int) {};
    return ::sigaction(kSignal, &action, nullptr) == 0;
  }();
  static_cast<void>(installed);
}

// The line of /proc that tells which system call a thread sleeps in, with its arguments; empty: in none that counts.
std::string sleeping_call(const std::string& thread) {
  const UniqueFd file(::open(("/proc/self/task/" + thread + "/syscall").c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return {};
  std::array<char, 256> text{};
  const ssize_t length = ::read(file.get(), text.data(), text.size());
  if (length <= 0) return {};
  std::string line(text.data(), static_cast<std::size_t>(length));
  char* end = nullptr;
  const long number = std::strtol(line.c_str(), &end, 10);
  const bool counts = end != line.c_str() && (number == SYS_close || number == SYS_recvmsg);
  return counts ? line : std::string();
}

// Of a recvmsg(); -1: another call.
int socket_of(const std::string& call) {
  char* end = nullptr;
  if (std::strtol(call.c_str(), &end, 10) != SYS_recvmsg) return -1;
  return static_cast<int>(std::strtoul(end, nullptr, 16));
}

std::map<std::string, std::string> sleeping_calls() {
  std::map<std::string, std::string> calls;
  const std::unique_ptr<DIR, int (*)(DIR*)> threads(::opendir("/proc/self/task"), ::closedir);
  while (const dirent* entry = threads ? ::readdir(threads.get()) : nullptr) {
    if (entry->d_name[0] == '.') continue;
    if (std::string call = sleeping_call(entry->d_name); !call.empty()) calls.emplace(entry->d_name, std::move(call));
  }
  return calls;
}

}  // namespace

ShortSleeps::ShortSleeps() {
  install_handler();
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = kSignal;
#ifdef sigev_notify_thread_id
  event.sigev_notify_thread_id = ::gettid();
#else
  event._sigev_un._tid = ::gettid();
#endif
  timer_t timer{};
  if (::timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) return;
  timer_ = timer;
  const itimerspec again_and_again{{0, kLongestSleep}, {0, kLongestSleep}};
  ::timer_settime(timer, 0, &again_and_again, nullptr);
}

ShortSleeps::~ShortSleeps() {
  if (timer_) ::timer_delete(*timer_);
}

struct SleepBreaker::State {
  State(std::function<void(int)> tell, std::chrono::milliseconds period) : report(std::move(tell)), every(period) {
    thread = std::thread([this] {
      ::pthread_setname_np(::pthread_self(), "mr-waker");
      while (!stopped.try_acquire_for(every)) look();
    });
  }
  ~State() {
    stopped.release();
    thread.join();
  }

  void look() {
    std::map<std::string, std::string> now = sleeping_calls();
    for (const auto& [id, call] : now) {
      const auto known = before.find(id);
      if (known == before.end() || known->second != call) continue;
      if (const int socket = socket_of(call); socket >= 0) report(socket);
      ::syscall(SYS_tgkill, ::getpid(), std::atoi(id.c_str()), kSignal);
    }
    before = std::move(now);
  }

  const std::function<void(int)> report;
  const std::chrono::milliseconds every;
  std::map<std::string, std::string> before;  // thread to call, at the last look
  std::binary_semaphore stopped{0};
  std::thread thread;
};

Result<std::unique_ptr<SleepBreaker>> SleepBreaker::create(std::function<void(int socket)> report,
                                                           std::chrono::milliseconds every) {
  if (::access("/proc/self/task", R_OK) != 0) return errno_error("looking at /proc/self/task", errno);
  install_handler();
  return std::unique_ptr<SleepBreaker>(new SleepBreaker(std::make_unique<State>(std::move(report), every)));
}

SleepBreaker::SleepBreaker(std::unique_ptr<State> state) : state_(std::move(state)) {}
SleepBreaker::~SleepBreaker() = default;

}  // namespace millrace
