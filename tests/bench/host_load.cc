// What the daemon takes of its host when nobody wants anything, and how soon it has back what a killed client held while
// another one is at work.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/bench/figures.h"
#include "tests/bench/host_load.h"
#include "tests/bench/rig.h"
#include "tests/bench/service/cores.h"

namespace millrace::bench {
namespace {

constexpr const char* kHold = "--hold-a-session";
constexpr std::uint32_t kSlots = 4, kBatch = 16;

Session open(Client& client) {
  return must(
      client.open_session({.name = "bench", .slots = kSlots, .batch = kBatch, .recipe = Recipe::evaluate(64, 64)}),
      "opening a session");
}

// Takes one batch, says so by a byte on stdout, and keeps it until it is killed.
[[noreturn]] void hold(const std::string& socket, const std::string& folder) {
  Client client = must(Client::connect(socket), "connecting");
  Session session = open(client);
  const Dataset dataset = must(session.open_dataset(folder), "opening the dataset");
  Epoch epoch = session.epoch(dataset, {.seed = 1, .shuffle = true});
  const auto held = must(epoch.next(), "taking a batch");
  if (!held || ::write(STDOUT_FILENO, "h", 1) != 1) ::_exit(1);
  for (;;) ::pause();
}

// A process that holds a session. REQUIRES: killed before its end.
class Holder {
 public:
  Holder(const std::string& socket, const std::string& folder) {
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC) != 0) give_up("no pipe");
    process_ = ::fork();
    if (process_ == 0) {
      ::dup2(ends[1], STDOUT_FILENO);
      ::execl("/proc/self/exe", "millrace_bench", kHold, socket.c_str(), folder.c_str(), nullptr);
      ::_exit(127);
    }
    ::close(ends[1]);
    char said = 0;
    if (process_ < 0 || ::read(ends[0], &said, 1) != 1) give_up("a client that should hold a session does not");
    ::close(ends[0]);
  }
  void kill() const {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }

 private:
  pid_t process_ = -1;
};

std::size_t sessions_of(Rig& rig) {
  return must(rig.client.statistics(), "asking for statistics").sessions.size();
}

void report_idle(Rig& rig, const std::string& folder, const BenchOptions& options, const Report& report) {
  constexpr std::uint32_t kSessions = 8;
  const std::uint32_t rounds = options.quick ? 1 : 5;
  const auto round = options.quick ? std::chrono::seconds(1) : std::chrono::seconds(10);
  std::vector<Session> sessions;
  std::vector<Dataset> datasets;
  for (std::uint32_t i = 0; i < kSessions; ++i) {
    sessions.push_back(open(rig.client));
    datasets.push_back(must(sessions.back().open_dataset(folder), "opening the dataset"));
    Epoch epoch = sessions.back().epoch(datasets.back(), {.seed = i, .shuffle = true});
    for ([[maybe_unused]] const Batch& batch : epoch) {
    }
  }
  wait_until_filled(rig);
  std::this_thread::sleep_for(std::chrono::seconds(2));  // what was made last is packed
  std::vector<double> percent;
  report.progress("a daemon with nothing to do");
  for (std::uint32_t i = 0; i < rounds; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const double before = processor_seconds(rig.daemon.pid());
    std::this_thread::sleep_for(round);
    percent.push_back((processor_seconds(rig.daemon.pid()) - before) / seconds_since(begin) * 100);
  }
  report.add({.name = "idle.cpu",
              .value = median(percent),
              .unit = "%",
              .rounds = rounds,
              .note = "of one core, with 8 sessions that want nothing; at most 0.1"});
}

void report_reclaim(Rig& rig, const std::string& folder, const BenchOptions& options, const Report& report) {
  const std::uint32_t rounds = options.quick ? 5 : 200;
  std::atomic<bool> over{false};
  std::thread victim([&] {
    Client client = must(Client::connect(rig.daemon.socket()), "connecting");
    Session session = open(client);
    const Dataset dataset = must(session.open_dataset(folder), "opening the dataset");
    for (std::uint64_t number = 0; !over; ++number) {
      Epoch epoch = session.epoch(dataset, {.seed = 1, .epoch = number, .shuffle = true});
      for ([[maybe_unused]] const Batch& batch : epoch) {
        if (over) break;
      }
    }
  });
  while (sessions_of(rig) != 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  report.progress("clients killed beside one at work");
  std::vector<double> milliseconds;
  for (std::uint32_t i = 0; i < rounds; ++i) {
    const Holder holder(rig.daemon.socket(), folder);
    const auto begin = std::chrono::steady_clock::now();
    holder.kill();
    while (sessions_of(rig) != 1) {
    }
    milliseconds.push_back(seconds_since(begin) * 1e3);
  }
  over = true;
  victim.join();
  report.add({.name = "reclaim.p50", .value = median(milliseconds), .unit = "ms", .rounds = rounds, .note = ""});
  report.add({.name = "reclaim.p99",
              .value = percentile(milliseconds, 99),
              .unit = "ms",
              .rounds = rounds,
              .note = "from kill -9 until the daemon says that the session is gone; at most 100"});
}

}  // namespace

void hold_a_session_if_asked(int argc, char** argv) {
  if (argc == 4 && std::strcmp(argv[1], kHold) == 0) hold(argv[2], argv[3]);
}

void run_host_load(const BenchOptions& options, const Report& report) {
  {
    Rig rig = Rig::start(options.data, 2);
    report_idle(rig, options.data, options, report);
  }
  Rig rig = Rig::start(options.data, 2);
  report_reclaim(rig, options.data, options, report);
}

}  // namespace millrace::bench
