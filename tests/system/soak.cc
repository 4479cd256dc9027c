// Many clients and every fault at once, by the clock: `millrace_system_soak [--seconds 60] [--clients 64] [--seed N]`.
//
// Steady readers go through epochs and are never harmed themselves; each has to get exactly what it got when it was
// alone, over every restart of the daemon. Wild clients around them are killed in the middle of what they do, stopped,
// or go as they like; files change and vanish under them, their disk fails and is slow, the time of day jumps, rubbish
// comes in by both doors, and the daemon is killed, stopped and started again. In the end the daemon holds nothing.
//
// What happens when is drawn from the seed, which is printed first. Exit status: 0 all held, 1 something did not.
#include <dirent.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "proto/base/sockets/handoff_path.h"
#include "proto/base/unique_fd.h"
#include "tests/support/host/eventually.h"
#include "tests/support/host/temp_folder.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/system/support/daemon.h"
#include "tests/system/support/host_faults.h"
#include "tests/system/support/need.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

struct Options {
  std::uint32_t seconds = 60;
  std::uint32_t clients = 64;
  std::uint64_t seed = 0;  // 0: a new one
};

class Chance {
 public:
  explicit Chance(std::uint64_t seed) : random_(seed) {}
  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  std::chrono::milliseconds up_to(std::chrono::milliseconds most) {
    return std::chrono::milliseconds(below(static_cast<std::uint64_t>(most.count())) + 1);
  }

 private:
  std::mt19937_64 random_;
};

// A reader that wants its epoch, from wherever the daemon's end has left it.
struct Steady {
  std::string seed;
  std::string position;  // file
  std::string expected;  // of the whole epoch
  std::string got;       // in earlier processes of this epoch
  std::optional<Process> process;
  std::uint32_t epochs = 0;
};

struct Wild {
  std::optional<Process> process;
  Clock::time_point until;  // then it is killed
  bool stopped = false;
};

std::size_t descriptors_of(pid_t process) {
  std::error_code gone;
  const auto all = fs::directory_iterator("/proc/" + std::to_string(process) + "/fd", gone);
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

std::uint64_t resident_kib(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmRSS:")) return std::stoull(line.substr(6));
  return 0;
}

// Whatever it is, the daemon has to be rid of it.
void send_rubbish(const std::string& path, int type, std::size_t bytes) {
  const UniqueFd socket(::socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return;
  const std::string rubbish(bytes, '\x81');
  static_cast<void>(::send(socket.get(), rubbish.data(), rubbish.size(), MSG_NOSIGNAL));
}

class Soak {
 public:
  explicit Soak(const Options& options)
      : options_(options),
        chance_(options.seed),
        daemon_({.roots = {folder_.path()},
                 .limits = "sessions = 128\nsessions_per_user = 128\n",
                 .daemon = "drain_seconds = 1\n",
                 .log_level = "info",
                 .env = {faults_.env()},
                 .program = bad_host_program()}) {
    write_image_folder(calm_, {.images = 48, .classes = 3});
    wild_paths_ = write_image_folder(stormy_, {.images = 64, .classes = 4});
    write_file(folder_ / "large.jpg", read_file(wild_paths_.front()));
    for (std::uint32_t i = 0; i < std::max(1U, options.clients / 8); ++i) add_steady(i);
    wild_.resize(options.clients - steady_.size());
  }

  bool run() {
    const auto end = Clock::now() + std::chrono::seconds(options_.seconds);
    auto told = Clock::now();
    while (Clock::now() < end && good_) {
      for (Steady& reader : steady_) look_after(reader);
      for (Wild& client : wild_) look_after(client);
      harm_host();
      harm_daemon();
      if (Clock::now() - told > 10s) tell(told = Clock::now());
      std::this_thread::sleep_for(20ms);
    }
    calm_down();
    return good_;
  }

 private:
  Clock::time_point next_restart() { return Clock::now() + 4s + chance_.up_to(12s); }

  void add_steady(std::uint32_t number) {
    const std::string seed = std::to_string(100 + number);
    steady_.push_back({.seed = seed,
                       .position = folder_ / ("position_" + seed),
                       .expected = daemon_.run_client("epoch", {calm_, "seed=" + seed}),
                       .got = {},
                       .process = {}});
  }

  void start(Steady& reader) {
    reader.process.emplace(daemon_.client("epoch", {calm_, "seed=" + reader.seed, "position=" + reader.position}));
  }

  void look_after(Steady& reader) {
    if (!reader.process) return start(reader);
    const std::optional<int> status = reader.process->wait(0ms);
    if (!status) return;
    reader.got += reader.process->output();
    const std::string errors = reader.process->errors();
    if (*status == 0) {
      if (reader.got != reader.expected) return broken("an epoch is not what it was alone, seed " + reader.seed);
      ++reader.epochs;
      reader.got.clear();
      fs::remove(reader.position);
    } else if (errors.find("UNAVAILABLE") == errors.npos) {
      return broken("a steady reader failed, and not for want of a daemon: " + errors);
    }
    start(reader);
  }

  void look_after(Wild& client) {
    if (client.process && client.process->running()) {
      if (Clock::now() < client.until) return;
      if (!client.stopped && chance_.one_in(4)) {  // first it stops for a while, with all that it holds
        client.process->kill(SIGSTOP);
        client.stopped = true;
        client.until = Clock::now() + chance_.up_to(2s);
        return;
      }
      client.process->kill(SIGKILL);
      ++killed_;
    }
    client.process.emplace(a_wild_one());
    client.stopped = false;
    client.until = Clock::now() + chance_.up_to(3s);
  }

  Process a_wild_one() {
    const std::string seed = "seed=" + std::to_string(chance_.below(1'000));
    switch (chance_.below(8)) {
      case 0:
        return daemon_.client("hold", {stormy_, std::to_string(1 + chance_.below(4))});
      case 1:
        return daemon_.client("die_in_submit", {folder_ / "large.jpg"});
      case 2: {
        Process client = daemon_.client("die_with_work", {stormy_});
        client.say("die");
        return client;
      }
      case 3: {
        const char* const stages[] = {"connected", "welcomed", "opened"};
        return daemon_.client("handoff", {stages[chance_.below(3)]});
      }
      case 4:
        return daemon_.client("open", {std::to_string(1 + chance_.below(4)), "1"});
      case 5:
        return daemon_.client("list", {chance_.one_in(2) ? stormy_ : "/etc"});
      default:
        return daemon_.client("epoch", {stormy_, seed});
    }
  }

  void harm_host() {
    if (chance_.one_in(50)) faults_.reads_fail(chance_.one_in(2) ? "stormy" : "");
    if (chance_.one_in(50)) faults_.reads_take(chance_.one_in(2) ? 5 : 0, "stormy");
    if (chance_.one_in(100)) faults_.clock_is_ahead(static_cast<std::int64_t>(chance_.below(200'000)) - 100'000);
    const std::string& file = wild_paths_[chance_.below(wild_paths_.size())];
    if (chance_.one_in(5)) write_file(file, std::string(chance_.below(4'000), 'x'));
    if (chance_.one_in(20)) fs::remove(file);
    if (chance_.one_in(5)) send_rubbish(daemon_.socket(), SOCK_STREAM, chance_.below(5'000));
    if (chance_.one_in(5)) send_rubbish(handoff_path(daemon_.socket()), SOCK_SEQPACKET, chance_.below(500));
  }

  void harm_daemon() {
    if (Clock::now() < restart_at_) return;
    restart_at_ = next_restart();
    end_daemon(chance_.one_in(3) ? SIGTERM : SIGKILL);
    if (!good_) return;
    daemon_.start();
    ++restarts_;
  }

  // Its end is what it was told: a sanitizer's report makes it another one.
  void end_daemon(int signal) {
    if (!daemon_.running()) return broken("the daemon has ended by itself");
    daemon_.kill(signal);
    const std::optional<int> status = daemon_.wait(30s);
    if (!status) return broken("the daemon does not end");
    const int expected = signal == SIGTERM ? 0 : 128 + SIGKILL;
    if (*status != expected)
      broken("the daemon ended with " + std::to_string(*status) + ", not " + std::to_string(expected));
  }

  // Nobody is left, so nothing is.
  void calm_down() {
    faults_.reads_fail("");
    faults_.reads_take(0, "");
    for (Wild& client : wild_) client.process.reset();
    for (Steady& reader : steady_) reader.process.reset();
    tell(Clock::now());
    if (!good_) return;
    Client client = daemon_.connect();
    for (const char* const held :
         {"millrace_sessions", "millrace_slots", "millrace_segment_bytes", "millrace_handoff_connections",
          "millrace_samples_in_flight", "millrace_batches_in_flight", "millrace_encoded_in_flight_bytes"}) {
      double last = 0;
      if (!eventually([&] { return (last = metric_of(need(client.statistics()), held)) == 0; }, 30s))
        broken(std::string(held) + " is " + std::to_string(last) + " although nobody is there");
    }
    if (!eventually([&] { return daemon_.segments().empty(); })) broken("shared memory is left");
    if (!eventually([] { return names_in_dev_shm().empty(); })) broken("a name is left in /dev/shm");
    std::uint32_t epochs = 0;
    for (const Steady& reader : steady_) epochs += reader.epochs;
    if (epochs == 0) broken("no steady reader has come to the end of an epoch");
    if (good_) end_daemon(SIGTERM);
  }

  void tell(Clock::time_point) const {
    std::uint32_t epochs = 0;
    for (const Steady& reader : steady_) epochs += reader.epochs;
    std::printf("steady epochs %u, clients killed %u, daemons %u; descriptors %zu, resident %llu KiB\n", epochs,
                killed_, restarts_ + 1, descriptors_of(daemon_.pid()),
                static_cast<unsigned long long>(resident_kib(daemon_.pid())));
    std::fflush(stdout);
  }

  void broken(const std::string& what) {
    good_ = false;
    std::printf("BROKEN: %s (seed %llu)\n", what.c_str(), static_cast<unsigned long long>(options_.seed));
    const std::string log = daemon_.errors();
    std::printf("the end of the daemon's log:\n%s\n",
                log.substr(log.size() - std::min<std::size_t>(log.size(), 4'000)).c_str());
  }

  const Options options_;
  Chance chance_;
  TempFolder folder_;
  const std::string calm_ = folder_ / "calm", stormy_ = folder_ / "stormy";
  std::vector<std::string> wild_paths_;
  HostFaults faults_{folder_ / "faults"};
  Daemon daemon_;
  std::vector<Steady> steady_;
  std::vector<Wild> wild_;
  bool good_ = true;
  Clock::time_point restart_at_ = next_restart();
  std::uint32_t killed_ = 0, restarts_ = 0;
};

}  // namespace
}  // namespace millrace

int main(int argc, char** argv) {
  using namespace millrace;
  Options options;
  CLI::App app{"Steady readers among clients that die, on a host that goes wrong, with a daemon that is killed"};
  app.add_option("--seconds", options.seconds, "How long")->capture_default_str()->check(CLI::Range(1, 86'400));
  app.add_option("--clients", options.clients, "Processes at once; an eighth of them are steady readers")
      ->capture_default_str()
      ->check(CLI::Range(2, 1'000));
  app.add_option("--seed", options.seed, "Of all that happens; 0: a new one, which is printed")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  if (options.seed == 0) options.seed = std::random_device{}() + 1ULL;
  std::printf("seed %llu, %u clients, %u s\n", static_cast<unsigned long long>(options.seed), options.clients,
              options.seconds);
  try {
    return Soak(options).run() ? 0 : 1;
  } catch (const std::exception& error) {
    std::printf("BROKEN: %s (seed %llu)\n", error.what(), static_cast<unsigned long long>(options.seed));
    return 1;
  }
}
