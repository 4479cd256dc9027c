// What jobs cost: a real daemon's accounts of real clients, beside the kernel's.
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/host/eventually.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/system/support/command.h"
#include "tests/system/support/daemon.h"
#include "tests/system/support/need.h"
#include "tests/system/support/raw_session.h"
#include "tests/system/support/users.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;
using CpuTime = std::chrono::duration<double>;

constexpr double kSums = 0.03;  // by which sums may be off
constexpr auto kLong = std::chrono::minutes(2);

// Of a process that was not waited for; 0: it was.
CpuTime clock_of(pid_t process) {
  clockid_t clock{};
  timespec time{};
  if (::clock_getcpuclockid(process, &clock) != 0 || ::clock_gettime(clock, &time) != 0) return CpuTime(0);
  return CpuTime(static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9);
}

// Of the process and its children, those that have ended included.
CpuTime kernels_figure(pid_t daemon) {
  CpuTime sum{};
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", gone)) {
    std::ifstream file(entry.path() / "stat");
    std::string text;
    if (!std::getline(file, text)) continue;
    std::istringstream fields(text.substr(text.rfind(')') + 1));
    std::string state;
    pid_t parent = 0;
    fields >> state >> parent;
    const auto process = static_cast<pid_t>(std::strtol(entry.path().filename().c_str(), nullptr, 10));
    if (process == 0) continue;  // "self"
    if (process != daemon && parent != daemon) continue;
    sum += clock_of(process);
    if (process != daemon) continue;
    std::vector<double> rest(13);
    for (double& field : rest) fields >> field;
    sum += CpuTime((rest[11] + rest[12]) / static_cast<double>(::sysconf(_SC_CLK_TCK)));  // cutime, cstime
  }
  return sum;
}

struct CostMill {
  explicit CostMill(DaemonSpec spec = {}, ImageFolderSpec pictures = {.images = 32, .classes = 2})
      : daemon([&] {
          paths = write_image_folder(folder / "pictures", pictures);
          spec.roots = {folder.path()};
          return spec;
        }()) {
    for (const std::string& path : paths) bytes += std::filesystem::file_size(path);
  }

  Statistics statistics() const { return need(daemon.connect().statistics()); }

  std::optional<JobStatistics> job(const std::string& name) const {
    const Statistics told = statistics();
    const auto found = std::ranges::find(told.jobs, name, &JobStatistics::name);
    return found == told.jobs.end() ? std::nullopt : std::optional(*found);
  }

  Session open(const std::string& job, const std::string& name = "rank 0") const {
    return need(daemon.connect().open_session({.name = name, .job = job, .slots = 2, .slot_bytes = 1_MiB}));
  }

  // One of all pictures; returns how many.
  std::uint64_t epoch(Session& session, Recipe recipe = Recipe::train(64), std::uint64_t number = 0) const {
    const Dataset dataset = need(session.open_dataset(folder / "pictures"));
    Epoch epoch = session.epoch(dataset, {.batch = 8, .recipe = std::move(recipe), .epoch = number});
    std::uint64_t images = 0;
    while (const std::optional<Batch> batch = need(epoch.next())) images += batch->tensor.samples();
    return images;
  }

  TempFolder folder;
  std::vector<std::string> paths;
  std::uint64_t bytes = 0;
  Daemon daemon;
};

Cost sum_of(const std::vector<JobStatistics>& jobs) {
  Cost sum;
  for (const JobStatistics& job : jobs) {
    sum.lane_cpu += job.cost.lane_cpu;
    sum.fetch_cpu += job.cost.fetch_cpu;
    sum.control_cpu += job.cost.control_cpu;
    sum.process_cpu += job.cost.process_cpu;
    sum.images += job.cost.images;
  }
  return sum;
}

std::chrono::duration<double> stage_of(const SessionStatistics& session, const std::string& name) {
  const auto found = std::ranges::find(session.making, name, &StageTime::stage);
  return found == session.making.end() ? std::chrono::duration<double>{} : found->time;
}

}  // namespace

TEST_CASE("jobs and the daemon's own add up to the kernel's figure, with two users and a client that is killed",
          "[system]") {
  if (skipped_without_root("costs of two users")) return;
  const CostMill mill({.cpu = "isolation = \"process\"\n", .cache = "memory = 0\n", .for_all_users = true},
                      {.images = 32, .classes = 2, .min_side = 200, .max_side = 600});
  std::filesystem::permissions(mill.folder.path(), std::filesystem::perms(0755));
  std::vector<std::string> words = mill.paths;
  words.push_back("side=128");
  const auto used_by = [&](uid_t user) {
    CpuTime used{};
    for (const JobStatistics& job : mill.statistics().jobs) used += job.uid == user ? job.cost.cpu() : CpuTime{};
    return used;
  };
  {
    const Process alices = mill.daemon.client("work", words, kAlice), bobs = mill.daemon.client("work", words, kBob);
    REQUIRE(eventually([&] { return used_by(kAlice) > 1s && used_by(kBob) > 1s; }, kLong));
    alices.kill(SIGKILL);
    const CpuTime before = used_by(kBob);
    REQUIRE(eventually([&] { return used_by(kBob) > before + 1s; }, kLong));
  }
  REQUIRE(eventually([&] { return mill.statistics().sessions.empty(); }));

  const CpuTime before = kernels_figure(mill.daemon.pid());
  const Statistics told = mill.statistics();
  const CpuTime after = kernels_figure(mill.daemon.pid());

  const Cost jobs = sum_of(told.jobs);
  CAPTURE(jobs.lane_cpu.count(), jobs.fetch_cpu.count(), jobs.control_cpu.count(), jobs.process_cpu.count(),
          told.own->cpu().count(), told.cpu.count(), before.count(), after.count());
  CHECK(told.cpu.count() >= before.count() * (1 - kSums));
  CHECK(told.cpu.count() <= after.count() * (1 + kSums));
  CHECK((jobs.cpu() + told.own->cpu()).count() == Approx(told.cpu.count()).epsilon(kSums));
  CHECK(jobs.cpu().count() <= told.cpu.count());
  CHECK(jobs.cpu().count() >= told.cpu.count() / 2);  // the daemon works for them
  CHECK(jobs.lane_cpu > 0s);
  CHECK(jobs.fetch_cpu > 0s);
  CHECK(jobs.control_cpu > 0s);
  CHECK(jobs.process_cpu > 0s);
  REQUIRE(told.users.size() == 2);
  for (const UserStatistics& user : told.users) CHECK(user.cost.cpu() > 0s);
  CHECK((told.users[0].cost.cpu() + told.users[1].cost.cpu()).count() == Approx(jobs.cpu().count()));
  for (const JobStatistics& job : told.jobs) CHECK(job.open == 0);
}

TEST_CASE("ranks and restarts of a job add up, and a session says what it cost", "[system]") {
  const CostMill mill({.cache = "memory = 0\n"});
  std::uint64_t images = 0;
  {
    Session first = mill.open("train", "rank 0"), second = mill.open("train", "rank 1");
    images += mill.epoch(first) + mill.epoch(second);
  }
  REQUIRE(eventually([&] { return mill.job("train")->open == 0; }));
  Session again = mill.open("train", "rank 0, restarted");
  images += mill.epoch(again);
  Session other = mill.open("", "evaluate");

  const std::optional<Cost> cost = need(again.cost());
  REQUIRE(cost);
  CHECK(cost->images == mill.paths.size());
  CHECK(cost->from_files.count == mill.bytes);
  CHECK(cost->from_kept.count == 0);
  CHECK(cost->tensors.count == mill.paths.size() * 64 * 64 * 3);
  CHECK(cost->lane_cpu > 0s);
  CHECK(cost->fetch_cpu > 0s);
  CHECK(cost->control_cpu > 0s);
  CHECK(cost->process_cpu == 0s);
  CHECK(cost->memory_byte_seconds > 0);
  const JobStatistics train = *mill.job("train");
  CHECK(train.sessions == 3);
  CHECK(train.open == 1);
  CHECK(train.uid == ::getuid());
  CHECK(train.cost.images == images);
  CHECK(train.cost.from_files.count == 3 * mill.bytes);
  CHECK(train.cost.lane_cpu > cost->lane_cpu);
  CHECK(train.cost.memory_byte_seconds > cost->memory_byte_seconds);
  CHECK(mill.job("evaluate")->open == 1);  // a session without a job has one of its name
}

TEST_CASE("a session's job is the one that it names, else $MILLRACE_JOB, else its name", "[system]") {
  const CostMill mill;
  REQUIRE(::setenv("MILLRACE_JOB", "of the environment", 1) == 0);
  const Session given = mill.open("given"), of_environment = mill.open("");
  REQUIRE(::unsetenv("MILLRACE_JOB") == 0);
  const RawSession older(mill.daemon.socket(), {.name = "older"});  // which has no such field

  const Statistics told = mill.statistics();
  REQUIRE(told.sessions.size() == 3);
  CHECK(told.sessions[0].job == "given");
  CHECK(told.sessions[1].job == "of the environment");
  CHECK(told.sessions[2].job == "older");
}

TEST_CASE("names of jobs are bounded, checked, and shown as text", "[system]") {
  const CostMill mill;
  const Client client = mill.daemon.connect();
  const auto refused = [&](const std::string& job) {
    return Client(mill.daemon.connect()).open_session({.job = job, .slots = 1, .slot_bytes = 4_KiB}).error();
  };
  CHECK(refused("a\x1b[2J").code == Code::kInvalid);
  CHECK_THAT(refused("a\nb").message, Catch::Contains("job: must be printable text"));
  CHECK_THAT(refused(std::string(65, 'x')).message, Catch::Contains("job: must have at most 64 bytes, has 65"));
  const std::string markup = R"(<b onload="x">&amp;{}')";
  static_cast<void>(mill.open(markup));
  CHECK(mill.job(markup)->sessions == 1);

  for (int i = 0; i < 65; ++i) static_cast<void>(mill.open("job " + std::to_string(i)));
  const Statistics told = mill.statistics();
  CHECK(told.jobs.size() == 65);
  CHECK(mill.job("job 64")->sessions == 1);
  CHECK(mill.job("other")->sessions == 2);  // the two that were closed the longest ago
  CHECK_FALSE(mill.job(markup));
}

TEST_CASE("what lanes make is told by stage, and steps of augmentation by their names", "[system]") {
  const CostMill mill({.cache = "memory = 0\n"});
  Session session = mill.open("train");
  Recipe recipe = Recipe::train(64);
  recipe.steps = {{.kind = steps::GaussianBlur{.kernel_size = 5, .sigma = {1, 2}}}, {.kind = steps::Solarize{128}}};
  mill.epoch(session, recipe);

  const SessionStatistics told = mill.statistics().sessions.at(0);
  std::chrono::duration<double> sum{};
  for (const StageTime& stage : told.making) sum += stage.time;
  CHECK(sum.count() == Approx(told.lanes.count()).epsilon(0.02));
  for (const char* stage : {"decode", "resample", "gaussian_blur", "solarize"}) {
    CAPTURE(stage);
    CHECK(stage_of(told, stage) > 0s);
  }
  CHECK(stage_of(told, "pack") == 0s);
}

TEST_CASE("what is kept stands in for files, and saves lane time", "[system]") {
  const CostMill mill({.cache = "settled_seconds = 2\n"},
                      {.images = 16, .classes = 2, .min_side = 300, .max_side = 500, .only_jpeg = true});
  Session session = need(
      mill.daemon.connect().open_session({.job = "train", .slots = 2, .slot_bytes = 1_MiB, .cache_at_once = true}));
  std::uint64_t number = 0;
  REQUIRE(eventually([&] {
    mill.epoch(session, Recipe::train(64), number++);
    return need(session.cost())->from_kept.count > 0;
  }));

  const Cost cost = *need(session.cost());
  CHECK(cost.from_files.count < number * mill.bytes);
  CHECK(cost.images == number * mill.paths.size());
  const SessionStatistics told = mill.statistics().sessions.at(0);
  CHECK(stage_of(told, "pack") > 0s);
}

TEST_CASE("a program's waits are its job's", "[system]") {
  const CostMill mill;
  Session session = mill.open("train");
  for (int i = 0; i < 3; ++i) {
    BatchRequest request{.recipe = Recipe::train(32)};
    request.samples.push_back({.source = Path{mill.paths[0]}});
    CHECK_FALSE(need(session.wait(need(session.submit(std::move(request))))).failure);
  }
  REQUIRE(eventually([&] { return mill.statistics().sessions.at(0).waits_told == 3; }));

  const SessionStatistics told = mill.statistics().sessions.at(0);
  std::chrono::duration<double> waited{};
  for (const StateTime& state : told.states) waited += state.waited;
  CHECK(told.cost->waited > 0s);
  CHECK(told.cost->waited.count() == Approx(waited.count()));
  CHECK(mill.job("train")->cost.waited == told.cost->waited);
}

TEST_CASE("millrace stats and run tell of costs", "[system]") {
  const CostMill mill;
  const std::string socket = mill.daemon.socket(), pictures = mill.folder / "pictures";
  const Ran ran = run({"millrace", "run", "--socket", socket, "--dataset", pictures, "--job", "nightly"});
  CAPTURE(ran.output, ran.errors);
  REQUIRE(ran.status == 0);
  CHECK_THAT(ran.output, Catch::Contains("it cost ") && Catch::Contains(" s of CPU (lanes ") &&
                             Catch::Contains(" read from files"));

  const std::string text = run({"millrace", "stats", "--socket", socket}).output;
  CAPTURE(text);
  CHECK_THAT(text,
             Catch::Contains("\nJOB ") && Catch::Contains("\nnightly ") && Catch::Contains("the daemon for itself: "));
  std::istringstream lines(text.substr(text.find("\nJOB ") + 1));
  for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 80);
  const auto json = parsed(run({"millrace", "stats", "--socket", socket, "--json"}).output);
  const auto& job = json.get_child("jobs").front().second;
  CHECK(job.get<std::string>("name") == "nightly");
  CHECK(job.get<std::uint64_t>("cost.images") == mill.paths.size());
  CHECK(json.get<double>("cpu_seconds") > 0);
  CHECK(json.get_child("own").get<double>("control_cpu_seconds") >= 0);
}

}  // namespace millrace
