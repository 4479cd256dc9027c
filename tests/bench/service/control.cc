// What the threads that move images on cost, beside those that make them: processor time an image of the control thread
// and of the fetch threads; and how many images a second they move when there is next to nothing to make.
#include <string>

#include "tests/bench/figures.h"
#include "tests/bench/service/cores.h"
#include "tests/bench/service/service.h"

namespace millrace::bench {
namespace {

constexpr std::uint32_t kLanes = 2;
constexpr std::uint32_t kManyLanes = 64;

// Processor time of a kind of thread an image, round by round.
class ThreadCost {
 public:
  explicit ThreadCost(const char* thread) : thread_(thread) {}

  void begin(std::int32_t daemon) { before_ = thread_seconds(daemon, thread_); }
  void end(std::int32_t daemon, std::size_t images) {
    microseconds_.push_back((thread_seconds(daemon, thread_) - before_) * 1e6 / static_cast<double>(images));
  }
  const std::vector<double>& microseconds() const { return microseconds_; }

 private:
  const char* thread_;
  double before_ = 0;
  std::vector<double> microseconds_;
};

struct Rounds {
  std::vector<double> rates;  // images a second
  ThreadCost control{"mr-control"}, fetch{"mr-fetch-"};
};

// `epochs` a round, each of `images`.
Rounds measure(Service& service, std::size_t images, std::uint32_t rounds, std::uint32_t epochs) {
  Rounds measured;
  std::uint64_t number = 0;
  service.epoch(number++);
  for (std::uint32_t round = 0; round < rounds; ++round) {
    for (ThreadCost* cost : {&measured.control, &measured.fetch}) cost->begin(service.daemon_pid());
    std::vector<double> rates;
    for (std::uint32_t epoch = 0; epoch < epochs; ++epoch) rates.push_back(service.epoch(number++));
    for (ThreadCost* cost : {&measured.control, &measured.fetch}) cost->end(service.daemon_pid(), images * epochs);
    measured.rates.push_back(median(rates));
  }
  return measured;
}

}  // namespace

void run_control(const BenchOptions& options, const Report& report) {
  constexpr std::uint32_t kControlCopies = 10;
  const RepeatedFolder folder(files_in(options.data), options.quick ? 1 : kControlCopies);
  const std::size_t images = files_in(folder.path()).size();
  const std::uint32_t rounds = options.quick ? 1 : 15;
  report.progress("control and fetch threads with photographs, " + std::to_string(rounds) + " rounds");
  Service few(folder.path(), kLanes), many(folder.path(), kManyLanes);
  const Rounds of_few = measure(few, images, rounds, 1);
  const Rounds of_many = measure(many, images, rounds, 1);
  const auto add = [&](const char* name, const ThreadCost& cost, std::uint32_t lanes) {
    report.add({.name = name,
                .value = median(cost.microseconds()),
                .unit = "us/image",
                .rounds = rounds,
                .note = std::to_string(lanes) + " lanes, photographs"});
  };
  add("control.cpu", of_few.control, kLanes);
  add("control.cpu.many", of_many.control, kManyLanes);
  add("fetch.cpu", of_few.fetch, kLanes);
}

void run_ceiling(const BenchOptions& options, const Report& report) {
  constexpr std::uint32_t kBatch = 256;
  const std::uint32_t images = options.quick ? 1'000 : 10'000;
  const std::uint32_t rounds = options.quick ? 1 : 9;
  const std::uint32_t epochs = options.quick ? 1 : 5;
  report.progress("tiny files, " + std::to_string(rounds) + " rounds of " + std::to_string(images * epochs));
  const TinyFiles files(images);
  Service service(files.path(), kLanes, Recipe{.resize = ExactSize{{8, 8}}}, kBatch);
  const Rounds measured = measure(service, images, rounds, epochs);
  report.add({.name = "service.ceiling",
              .value = median(measured.rates),
              .unit = "images/s",
              .rounds = rounds,
              .note = "control thread " + one_decimal(median(measured.control.microseconds())) + ", fetch threads " +
                      one_decimal(median(measured.fetch.microseconds())) + " us/image"});
}

}  // namespace millrace::bench
