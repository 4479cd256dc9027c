// What jobs cost: the table of them and its bounds, and the accounts of sessions.
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "daemon/observe/cpu_time.h"
#include "daemon/observe/job_costs.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;

const CostAccount::Clock::time_point kCostBegin{1000s};

// Images by user and job.
std::map<std::pair<std::uint32_t, std::string>, std::uint64_t> images_in(const JobCosts& jobs) {
  std::map<std::pair<std::uint32_t, std::string>, std::uint64_t> images;
  jobs.for_each([&](std::uint32_t user, std::string_view name, const JobAccount& job) {
    images[{user, std::string(name)}] += job.costs.at(kCostBegin).images;
  });
  return images;
}

// A session that makes an image and is closed.
void run_session(JobCosts& jobs, std::uint32_t user, const std::string& name) {
  const std::shared_ptr<JobAccount> job = jobs.opens(user, name);
  SessionCosts(job).add({.images = 1});
  jobs.closes(*job);
}

}  // namespace

TEST_CASE("sessions of a user's job add up, one after the other and at once", "[observe]") {
  JobCosts jobs;
  const auto first = jobs.opens(1000, "train"), second = jobs.opens(1000, "train"), others = jobs.opens(1001, "train");
  SessionCosts(first).add({.lane_cpu = 2s, .images = 3});
  SessionCosts(second).add({.lane_cpu = 1s, .images = 4});
  SessionCosts(others).add({.images = 5});
  jobs.closes(*first);

  CHECK(first == second);
  CHECK(first->open == 1);
  CHECK(first->sessions == 2);
  CHECK(first->costs.at(kCostBegin).cpu() == 3s);
  CHECK(images_in(jobs) ==
        std::map<std::pair<std::uint32_t, std::string>, std::uint64_t>{{{1000, "train"}, 7}, {{1001, "train"}, 5}});
}

TEST_CASE("of a user's 65 jobs the one whose last session closed the longest ago is among the others", "[observe]") {
  JobCosts jobs;
  for (int i = 0; i < 64; ++i) run_session(jobs, 1000, "job " + std::to_string(i));
  run_session(jobs, 1000, "job 0");  // which is now the latest

  run_session(jobs, 1000, "one more");

  const auto images = images_in(jobs);
  CHECK(images.size() == 65);
  CHECK(images.at({1000, "job 0"}) == 2);
  CHECK(images.at({1000, "one more"}) == 1);
  CHECK_FALSE(images.contains({1000, "job 1"}));
  CHECK(images.at({1000, "other"}) == 1);
}

TEST_CASE("a job that finds no room among open ones is one of the others", "[observe]") {
  JobCosts jobs;
  std::vector<std::shared_ptr<JobAccount>> open;
  for (int i = 0; i < 64; ++i) open.push_back(jobs.opens(1000, "job " + std::to_string(i)));
  run_session(jobs, 1000, "one more");

  CHECK(images_in(jobs).at({1000, "other"}) == 1);
  jobs.closes(*open[5]);
  run_session(jobs, 1000, "another");  // a batch of the closed one may still be under way
  CHECK_FALSE(images_in(jobs).contains({1000, "another"}));
  open[5].reset();
  run_session(jobs, 1000, "another");
  CHECK(images_in(jobs).contains({1000, "another"}));
}

TEST_CASE("jobs of all users and users are bounded, and no cost is lost", "[observe]") {
  JobCosts jobs;
  std::uint64_t made = 0;
  for (std::uint32_t user = 0; user < 200; ++user) {
    for (int i = 0; i < 20; ++i, ++made) run_session(jobs, user, "job " + std::to_string(i));
  }

  std::size_t entries = 0;
  std::map<std::uint32_t, bool> users;
  std::uint64_t images = 0;
  for (const auto& [key, count] : images_in(jobs)) {
    ++entries;
    users[key.first] = true;
    images += count;
  }
  CHECK(images == made);
  CHECK(users.size() <= JobCosts::kMostUsers + 1);
  CHECK(entries <= JobCosts::kMostJobs + users.size());
  CHECK(users.contains(JobCosts::kOtherUsers));
  CHECK(users.contains(199));
}

TEST_CASE("memory costs by the time that it is held", "[observe]") {
  JobCosts jobs;
  const auto job = jobs.opens(1000, "train");
  SessionCosts session(job), other(job);
  session.hold(Bytes{100}, kCostBegin);
  other.hold(Bytes{10}, kCostBegin + 1s);
  session.let_go(Bytes{40}, kCostBegin + 2s);

  CHECK(session.at(kCostBegin + 4s).memory_seconds == Approx(2 * 100 + 2 * 60));
  CHECK(job->costs.at(kCostBegin + 4s).memory_seconds == Approx(2 * 100 + 2 * 60 + 3 * 10));
}

TEST_CASE("what a session saved never falls, and what took longer is set off", "[observe]") {
  SessionCosts session;
  const auto saved = [&] { return session.at(kCostBegin).saved_lanes; };
  session.saved(3s);
  session.saved(-1s);
  CHECK(saved() == 3s);
  session.saved(2s);
  CHECK(saved() == 4s);
  session.saved(-100s);  // no more than five seconds of it
  session.saved(6s);
  CHECK(saved() == 5s);
}

TEST_CASE("a thread's CPU time is told part by part, and is the kernel's", "[observe]") {
  ThreadStopwatch stopwatch;
  stopwatch.lap();
  const std::chrono::nanoseconds before = thread_cpu_time();
  while (thread_cpu_time() - before <= 20ms) {
  }
  const std::chrono::nanoseconds used = stopwatch.lap();
  CHECK(used > 20ms);
  CHECK(used < thread_cpu_time() - before + 20ms);
  const std::chrono::nanoseconds so_far = thread_cpu_time();
  CHECK(process_cpu_time(::getpid()).value() >= so_far);
  CHECK(cpu_time_with_children() + 1ms >= so_far);  // which counts in whole microseconds
}

TEST_CASE("what is the daemon's own never falls when work under way becomes a job's", "[observe]") {
  JobCosts jobs;
  const auto job = jobs.opens(1000, "train");
  CHECK(jobs.own_of(10s) == 10s);  // some of it is a job's whose accounts come later

  SessionCosts(job).add({.lane_cpu = 4s});

  CHECK(jobs.own_of(11s) == 10s);
  CHECK(jobs.own_of(15s) == 11s);
}

TEST_CASE("the CPU time of all never falls, whenever children are reaped", "[observe]") {
  std::chrono::nanoseconds told{0};
  for (int i = 0; i < 50; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      const std::chrono::nanoseconds begun = thread_cpu_time();
      while (thread_cpu_time() - begun <= 2ms) {
      }
      ::_exit(0);
    }
    child_started(child);
    while (process_cpu_time(child).value_or(1s) < 2ms) {
    }
    const std::chrono::nanoseconds before = cpu_time_with_children();
    CHECK(before >= told);
    REQUIRE(::waitpid(child, nullptr, 0) == child);
    told = cpu_time_with_children();
    CHECK(told >= before);
    child_ended(child);
  }
}

TEST_CASE("every stage has a name of its own", "[observe]") {
  std::map<std::string_view, int> names;
  for (const std::string_view name : kStageNames) ++names[name];
  CHECK(names.size() == kStages);
}

}  // namespace millrace
