// Whose samples the fetch threads get next when some reads do not come back, seen by a fetcher that keeps its tasks.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "tests/integration/holding_backend.h"
#include "tests/integration/pipeline_fixture.h"
#include "tests/integration/pipeline_work.h"
#include "tests/support/host/eventually.h"

namespace millrace {
namespace {

constexpr std::uint32_t kPortion = 16;  // samples of a task
constexpr std::chrono::microseconds kFast{100};

// Keeps every task until the test has it read. Those of users in `hang` are stuck from the first moment.
class HoldingFetcher final : public FetcherInFront {
 public:
  using FetcherInFront::FetcherInFront;
  ~HoldingFetcher() override {
    for (FetchTask& task : held_) REQUIRE(FetcherInFront::try_fetch(std::move(task)));
  }

  bool try_fetch(FetchTask&& task) override MILLRACE_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    const std::uint32_t user = task.caller->uid;
    given_[user] += task.items.size();
    if (hanging_.count(user) > 0) look_stuck(task);
    held_.push_back(std::move(task));
    return true;
  }
  void relieve() override {
    looks_.fetch_add(1);
  }  // there are stuck tasks, which the control thread has just looked at

  void hang(UserId user) MILLRACE_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    hanging_.insert(raw(user));
  }
  // The first `tasks` that it keeps of him.
  void stick(UserId user, std::uint32_t tasks) MILLRACE_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    for (auto task = held_.begin(); task != held_.end() && tasks > 0; ++task) {
      if (task->caller->uid != raw(user)) continue;
      look_stuck(*task);
      --tasks;
    }
  }
  int looks() const { return looks_.load(); }
  std::int64_t held(UserId user) MILLRACE_EXCLUDES(mutex_) {  // tasks
    MutexLock lock(mutex_);
    return std::count_if(held_.begin(), held_.end(),
                         [&](const FetchTask& task) { return task.caller->uid == raw(user); });
  }
  std::size_t given(UserId user) MILLRACE_EXCLUDES(mutex_) {  // samples, so far
    MutexLock lock(mutex_);
    return given_[raw(user)];
  }
  // Reads the oldest task that does not hang, and says that each sample took so long. false: there is none.
  bool read_one(std::chrono::nanoseconds each) MILLRACE_EXCLUDES(mutex_) {
    std::promise<void> told;
    {
      MutexLock lock(mutex_);
      const std::set<std::uint32_t> hanging = hanging_;
      const auto next = std::find_if(held_.begin(), held_.end(),
                                     [&](const FetchTask& task) { return hanging.count(task.caller->uid) == 0; });
      if (next == held_.end()) return false;
      FetchTask task = std::move(*next);
      held_.erase(next);
      task.done = [each, &told, done = std::move(task.done)](std::vector<Fetched> items) {
        for (Fetched& item : items) item.time = each;
        done(std::move(items));
        told.set_value();
      };
      REQUIRE(FetcherInFront::try_fetch(std::move(task)));
    }
    told.get_future().wait();
    return true;
  }

 private:
  static void look_stuck(const FetchTask& task) {
    task.watch->since = (std::chrono::steady_clock::now() - 2 * kStuck).time_since_epoch().count();
  }

  Mutex mutex_;
  std::deque<FetchTask> held_ MILLRACE_GUARDED_BY(mutex_);
  std::set<std::uint32_t> hanging_ MILLRACE_GUARDED_BY(mutex_);
  std::map<std::uint32_t, std::size_t> given_ MILLRACE_GUARDED_BY(mutex_);
  std::atomic<int> looks_{0};
};

// Users with a session each, of which a first batch is read fast, and four fetch tasks for those who read slowly.
struct Readers {
  explicit Readers(FairWeights weights = {}) {
    PipelineSetup setup{.slots = 4, .slow_reads = 4, .weights = std::move(weights), .control_clock = [] {
                          return ControlTime::Clock::time_point{};
                        }};
    setup.backend = std::make_unique<HoldingBackend>(1);
    setup.in_front = [this](std::unique_ptr<Fetcher> real) {
      auto holding = std::make_unique<HoldingFetcher>(std::move(real));
      fetcher = holding.get();
      return holding;
    };
    fixture.emplace(std::move(setup));
  }

  // Its files are known to be read fast once a first batch of it is read.
  UserId open(std::uint32_t number) {
    const UserId user{5000 + number};
    fixture->open_another(SessionId{number}, user, sinks.emplace_back());
    return user;
  }
  UserId open_fast(std::uint32_t number) {
    const UserId user = open(number);
    submit(number, kPortion);
    read_all();
    return user;
  }
  void submit(std::uint32_t number, std::uint32_t samples) {
    BatchRequest request = batch_of(samples, 8);
    request.id = BatchId{++batches};
    REQUIRE(fixture->on_control([&] { return fixture->pipeline().submit(SessionId{number}, request); }));
    requests.push_back(std::move(request));  // which its samples point into
  }
  void read_all() {
    while (fetcher->read_one(kFast)) fixture->on_control([] {});
  }
  void wait_until_held(UserId user, std::int64_t tasks) {
    REQUIRE(eventually([&] { return fetcher->held(user) == tasks; }));
  }
  // Until the control thread has seen that what hangs now is stuck.
  void wait_for_a_look() {
    const int before = fetcher->looks();
    REQUIRE(eventually([&] { return fetcher->looks() >= before + 2; }));  // one of which began since
    fixture->on_control([] {});
  }

  HoldingFetcher* fetcher = nullptr;
  std::deque<CollectingSink> sinks;
  std::deque<BatchRequest> requests;
  std::uint64_t batches = 0;
  std::optional<PipelineFixture> fixture;
};

TEST_CASE("two users whose reads all hang keep no third one waiting", "[pipeline][integration]") {
  constexpr std::uint32_t kMuch = 64 * kPortion;
  Readers readers;
  const UserId first = readers.open_fast(2), second = readers.open_fast(3), third = readers.open(4);
  readers.fetcher->hang(first);
  readers.submit(2, kMuch);
  readers.wait_until_held(first, 8);
  readers.wait_for_a_look();
  readers.fetcher->hang(second);
  readers.submit(3, kMuch);
  readers.wait_until_held(second, 4);
  readers.wait_for_a_look();

  readers.submit(4, kMuch);
  readers.wait_until_held(third, 1);
  readers.read_all();

  CHECK(readers.fetcher->given(third) == kMuch);
  CHECK(readers.fetcher->held(first) == 8);
  CHECK(readers.fetcher->held(second) == 4);
}

TEST_CASE("once some of a session's reads are stuck it has no further one", "[pipeline][integration]") {
  Readers readers;
  const UserId user = readers.open_fast(2);
  readers.open(3);
  readers.submit(2, 64 * kPortion);
  readers.wait_until_held(user, 8);

  readers.fetcher->stick(user, 2);  // the others may hang as well
  readers.wait_for_a_look();

  CHECK(readers.fetcher->held(user) == 8);
}

TEST_CASE("users of weights 1 and 3 have time of the fetch threads of 1 to 3", "[pipeline][integration]") {
  constexpr std::uint32_t kMuch = 2'000;
  constexpr std::size_t kEnough = 1'200;
  Readers readers({.users = {{5003, 3}}});
  const UserId one = readers.open_fast(2), other = readers.open_fast(3);
  if (const bool a_third_hangs = GENERATE(false, true)) {
    CAPTURE(a_third_hangs);
    const UserId third = readers.open_fast(4);
    readers.fetcher->hang(third);
    readers.submit(4, 1);
    readers.wait_until_held(third, 1);
    readers.wait_for_a_look();
  }

  readers.submit(2, kMuch);
  readers.submit(3, kMuch);
  while (readers.fetcher->given(other) < kEnough) {
    REQUIRE(readers.fetcher->read_one(kFast));
    readers.fixture->on_control([] {});
  }

  CHECK(readers.fetcher->given(one) >= kEnough / 4);
  CHECK(readers.fetcher->given(one) <= kEnough / 2);
}

}  // namespace
}  // namespace millrace
