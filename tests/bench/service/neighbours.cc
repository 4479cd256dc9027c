// What one user's clients do to another's: shares of lane time, a training epoch beside attackers, one urgent image beside
// epochs. Attackers and polite clients are processes of users of their own, at a lower priority of the host's, so that it
// is the daemon that shares and not the kernel.
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/bench/figures.h"
#include "tests/bench/service/service.h"
#include "tests/system/support/daemon.h"

namespace millrace::bench {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr uid_t kOne = 64'001, kOther = 64'002;
constexpr std::uint32_t kNeighbourLanes = 2, kNeighbourBatch = 32;

Daemon daemon_on(std::vector<std::string> roots, const std::string& further_settings = "") {
  return Daemon({.roots = std::move(roots),
                 .lanes = kNeighbourLanes,
                 .cache = "memory = 0\n" + further_settings,
                 .log_level = "warning",
                 .for_all_users = true});
}

void let_all_read(const std::string& folder) {
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    fs::permissions(entry.path(), static_cast<fs::perms>(entry.is_directory() ? 0755 : 0644));
  fs::permissions(folder, static_cast<fs::perms>(0755));
}

// All its threads, and so those that they will make.
void make_nice(const Process& client) {
  constexpr int kNice = 10;
  const std::string tasks = "/proc/" + std::to_string(client.pid()) + "/task";
  for (const auto& task : fs::directory_iterator(tasks))
    ::setpriority(PRIO_PROCESS, static_cast<id_t>(std::stoul(task.path().filename())), kNice);
}

struct Act {
  std::string name;  // of millrace_system_client
  std::vector<std::string> arguments;
  std::string sign = "done";  // that it is at work
};

Process busy(const Daemon& daemon, const Act& act, uid_t user) {
  Process client = daemon.client(act.name, act.arguments, user);
  if (!client.wait_for(act.sign, std::chrono::minutes(2)))
    give_up("a client of user " + std::to_string(user) + " does nothing: " + client.errors());
  make_nice(client);
  return client;
}

std::vector<std::string> with(std::vector<std::string> options, const std::vector<std::string>& paths) {
  options.insert(options.end(), paths.begin(), paths.end());
  return options;
}

Act polite(const std::vector<std::string>& paths) {
  return {"work", with({"slots=4", "batch=" + std::to_string(kNeighbourBatch)}, paths)};
}

struct Had {
  double images_a_second = 0;
  double longest_gap = 0;  // ms, between one batch and the next
};

// A training epoch without end, of this process.
class Victim {
 public:
  Victim(const std::string& socket, const std::vector<std::string>& paths)
      : client_(must(Client::connect(socket), "connecting")),
        session_(must(client_.open_session({.name = "victim",
                                            .slots = 4,
                                            .batch = kNeighbourBatch,
                                            .recipe = Recipe::train(224),
                                            .cache = CacheUse::kOff}),
                      "opening a session")) {
    for (std::uint32_t i = 0; i < kNeighbourBatch; ++i)
      request_.samples.push_back({.source = Path{paths[i % paths.size()]}});
    for (std::uint32_t i = 0; i < session_.slots(); ++i) submit();
  }

  Had work_for(std::chrono::duration<double> span) {
    Had had;
    const auto begin = Clock::now();
    auto last = begin;
    std::uint64_t images = 0;
    while (Clock::now() - begin < span) {
      images += must(session_.next(std::chrono::minutes(2)), "a batch").tensor.samples();
      submit();
      const auto now = Clock::now();
      had.longest_gap = std::max(had.longest_gap, std::chrono::duration<double, std::milli>(now - last).count());
      last = now;
    }
    had.images_a_second = static_cast<double>(images) / seconds_since(begin);
    return had;
  }

 private:
  void submit() { must(session_.submit(request_), "a batch"); }

  Client client_;
  Session session_;
  BatchRequest request_;
};

struct Attack {
  std::string name;
  Act act;
};

// Files for attacks; all beneath a root.
std::vector<Attack> attacks(const std::string& folder, const std::vector<std::string>& photographs) {
  std::vector<std::string> sparse, padded;
  for (int i = 0; i < 16; ++i) {
    sparse.push_back(folder + "/sparse" + std::to_string(i) + ".jpg");
    padded.push_back(folder + "/padded" + std::to_string(i) + ".jpg");
    write_file(sparse.back(), std::string("no picture"));
    write_file(padded.back(), make_jpeg({.pixels = make_pixels(64, 64, 3, 1)}));
    for (const std::string& file : {sparse.back(), padded.back()}) fs::resize_file(file, std::uintmax_t{256} << 20);
  }
  const std::string links = folder + "/links";
  fs::create_directories(links + "/.way/d/d/d/d/d/d/d/d/d/d/d/d");
  write_file(links + "/.0", std::string("x"));
  for (int i = 1; i <= 35; ++i)
    fs::create_symlink(".way/d/d/d/d/d/d/d/d/d/d/d/d/../../../../../../../../../../../../../." + std::to_string(i - 1),
                       links + "/." + std::to_string(i));
  for (int i = 0; i < 2'000; ++i) fs::create_symlink(".35", links + "/" + std::to_string(i) + ".jpg");
  const std::string tiny = folder + "/tiny.png";
  write_file(tiny, make_png({.pixels = make_pixels(32, 32, 3, 1)}));
  return {{"priority", {"work", with({"priority=high", "slots=4", "batch=32"}, photographs)}},
          {"urgent", {"work", with({"priority=high", "sessions=4", "slots=16", "batch=1"}, photographs)}},
          {"sessions", {"work", with({"sessions=16", "slots=4", "batch=32"}, photographs)}},
          {"giants", {"work", with({"side=5000", "lanczos=1", "batch=2", "sessions=4", "slots=1"}, photographs)}},
          {"sparse", {"work", with({"batch=16"}, sparse)}},
          {"padded", {"work", with({"batch=16"}, padded)}},
          {"missing", {"work", {"packed=1", "batch=30000", "slot_mib=8", "slots=2", folder + "/missing*"}}},
          {"links", {"list_again", {links}}},
          {"tiny", {"work", {"inline=1", "batch=256", "side=32", "sessions=4", "slots=8", tiny}}},
          {"refused", {"work", {"packed=1", "batch=60000", "slot_mib=8", "slots=4", "/n"}}},
          {"cancels", {"send_cancels", {}}},
          {"statistics", {"ask_statistics", {}}},
          {"cancelled", {"cancel_calls", {}, "begins"}}};
}

struct Sides {
  std::vector<double> attacked, polite, gaps;
};

// The victim beside a polite client, and beside the attack.
void add_round(const Attack& attack, const std::vector<std::string>& photographs, const std::string& folder,
               std::chrono::duration<double> span, Sides& sides) {
  const Daemon daemon = daemon_on({folder});
  Victim victim(daemon.socket(), photographs);
  {
    const Process other = busy(daemon, polite(photographs), kOther);
    victim.work_for(span / 4);
    sides.polite.push_back(victim.work_for(span).images_a_second);
  }
  const Process attacker = busy(daemon, attack.act, kOther);
  const Had had = victim.work_for(span);
  sides.attacked.push_back(had.images_a_second);
  sides.gaps.push_back(had.longest_gap);
}

// These take minutes, so each by itself.
bool wanted(const BenchOptions& options, const std::string& figure) {
  return figure.find(options.filter) != std::string::npos;
}

struct Photos {
  explicit Photos(const std::string& data) : folder(files_in(data), 1), paths(files_in(folder.path())) {
    let_all_read(folder.path());
  }
  RepeatedFolder folder;
  std::vector<std::string> paths;
};

void report_victims(const BenchOptions& options, const Report& report) {
  const Photos photographs(options.data);
  const std::uint32_t rounds = options.quick ? 1 : 5;
  const auto span = std::chrono::duration<double>(options.quick ? 0.5 : 4);
  for (const Attack& attack : attacks(photographs.folder.path(), photographs.paths)) {
    if (options.quick && attack.name != "sessions" && attack.name != "cancelled") continue;
    if (!wanted(options, "fair.victim." + attack.name)) continue;
    report.progress("a training epoch beside an attacker: " + attack.name);
    Sides sides;
    for (std::uint32_t i = 0; i < rounds; ++i)
      add_round(attack, photographs.paths, photographs.folder.path(), span, sides);
    Figure figure{
        .name = "fair.victim." + attack.name,
        .unit = "images/s",
        .rounds = rounds,
        .note = "longest gap between two batches " + one_decimal(*std::ranges::max_element(sides.gaps)) + " ms"};
    report.add(compared(std::move(figure), sides.attacked, "a polite client", sides.polite));
  }
}

// Seconds of the lanes that sessions of a user have had.
double lanes_of(Client& client, uid_t user) {
  double seconds = 0;
  for (const SessionStatistics& session : must(client.statistics(), "asking for statistics").sessions)
    if (session.uid == user) seconds += session.lanes.count();
  return seconds;
}

void report_error(const BenchOptions& options, const Report& report) {
  const Photos photographs(options.data);
  const TempFolder small_folder;
  std::vector<std::string> small;
  for (std::uint32_t i = 0; i < kNeighbourBatch; ++i) {
    small.push_back(small_folder / (std::to_string(i) + ".jpg"));
    write_file(small.back(), make_jpeg({.pixels = make_pixels(200, 150, 3, i)}));
  }
  let_all_read(small_folder.path());
  const std::uint32_t rounds = options.quick ? 1 : 6;
  const auto span = std::chrono::duration<double>(options.quick ? 0.5 : 5);
  report.progress("two users with weights 1 and 3");
  std::vector<double> off;
  for (std::uint32_t i = 0; i < rounds; ++i) {
    const Daemon daemon =
        daemon_on({photographs.folder.path(), small_folder.path()}, "[fair]\nweights = [\"64001=1\", \"64002=3\"]\n");
    const bool swapped = i % 2 != 0;  // who has the large ones
    const Process one = busy(daemon, polite(swapped ? photographs.paths : small), kOne);
    const Process other = busy(daemon, polite(swapped ? small : photographs.paths), kOther);
    Client client = daemon.connect();
    std::this_thread::sleep_for(span / 5);
    const double one_before = lanes_of(client, kOne), other_before = lanes_of(client, kOther);
    std::this_thread::sleep_for(span);
    const double ones = lanes_of(client, kOne) - one_before, others = lanes_of(client, kOther) - other_before;
    off.push_back(std::abs(others / (ones + others) / 0.75 - 1) * 100);
  }
  report.add({.name = "fair.error",
              .value = median(off),
              .unit = "%",
              .rounds = rounds,
              .note = "at most " + one_decimal(*std::ranges::max_element(off)) + "; aim: at most 5"});
}

// Milliseconds from submitting one image's bytes to its tensor, urgent, one at a time.
std::vector<double> urgent_images(Client& client, const std::vector<std::byte>& bytes, std::uint32_t count) {
  Session session = must(
      client.open_session(
          {.name = "urgent", .slots = 1, .batch = 1, .recipe = Recipe::evaluate(256, 224), .cache = CacheUse::kOff}),
      "opening a session");
  std::vector<double> milliseconds;
  for (std::uint32_t i = 0; i < count; ++i) {
    BatchRequest request{.priority = Priority::kHigh};
    request.samples.push_back({.source = Encoded{bytes}});
    const auto begin = Clock::now();
    must(session.wait(must(session.submit(std::move(request)), "an image")), "an image");
    milliseconds.push_back(seconds_since(begin) * 1e3);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return milliseconds;
}

void report_latency(const BenchOptions& options, const Report& report) {
  const Photos photographs(options.data);
  const std::uint32_t rounds = options.quick ? 1 : 5, count = options.quick ? 20 : 400;
  report.progress("one urgent image at a time, beside two users' epochs");
  const std::vector<std::byte> bytes = read_file(photographs.paths.front());
  const Daemon daemon = daemon_on({photographs.folder.path()});
  Client client = daemon.connect();
  std::vector<double> idle, loaded, jobs;
  for (std::uint32_t i = 0; i < rounds; ++i) {
    idle.push_back(percentile(urgent_images(client, bytes, count), 99));
    const Process one = busy(daemon, polite(photographs.paths), kOne);
    const Process other = busy(daemon, polite(photographs.paths), kOther);
    const double lanes = lanes_of(client, kOne), images = daemon.metric("millrace_samples_total");
    loaded.push_back(percentile(urgent_images(client, bytes, count), 99));
    const double each = 2e3 * (lanes_of(client, kOne) - lanes) / (daemon.metric("millrace_samples_total") - images);
    jobs.push_back(each * std::ceil(double{kNeighbourBatch} / (kNeighbourLanes * 3)));
  }
  Figure figure{.name = "latency.busy",
                .unit = "ms",
                .rounds = rounds,
                .note = "p99 of one image, its bytes sent; a job of the others takes " + one_decimal(median(jobs)) +
                        " ms of a lane; aim: idle and one of these"};
  report.add(compared(std::move(figure), loaded, "idle", idle));
}

}  // namespace

void run_neighbours(const BenchOptions& options, const Report& report) {
  if (!is_root()) return report.progress("fair.*, latency.busy: left out, for they need root, to be several users");
  if (wanted(options, "fair.error")) report_error(options, report);
  report_victims(options, report);
  if (wanted(options, "latency.busy")) report_latency(options, report);
}

}  // namespace millrace::bench
