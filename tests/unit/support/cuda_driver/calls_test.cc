// The simulated CUDA driver: what its calls answer.
#include <csignal>
#include <thread>

#include "tests/support/cuda_driver/engine.h"
#include "tests/unit/support/cuda_driver/rig.h"

namespace millrace {
namespace {

TEST_CASE("a context is used while somebody retains it", "[cuda][driver]") {
  const Played played = play({"contexts"});

  INFO(played);
  CHECK(played.output ==
        "no context: 201\nafter the release: 201\nreleased twice: 201\nmade current: 201\nnone current: 0\n");
}

TEST_CASE("an address is known by the memory that it is in, which is freed by its first", "[cuda][driver]") {
  const Played played = play({"ranges"});

  INFO(played);
  CHECK(played.output == "range: 0\nits beginning, 10000 bytes\nrange behind: 500\nfree within: 1\n");
}

TEST_CASE("an event says whether its stream has passed it, and when", "[cuda][driver]") {
  const Played played = play({"events"});

  INFO(played);
  CHECK(played.output ==
        "query of what was not recorded: 0\nelapsed before: 600\nstream held up: 600\nevent held up: 600\nevent: 0\n"
        "elapsed: 0\nas long as it took\nuntimed: 400\n");
}

TEST_CASE("a stream or an event used after it was destroyed ends the process", "[cuda][driver]") {
  const std::string of_stream = "simulated CUDA: a stream used after it was destroyed\n",
                    of_event = "simulated CUDA: an event used after it was destroyed\n";
  const std::pair<const char*, const std::string&> calls[] = {
      {"cuStreamSynchronize", of_stream}, {"cuStreamDestroy", of_stream}, {"cuEventRecord to it", of_stream},
      {"cuEventRecord", of_event},        {"cuEventQuery", of_event},     {"cuEventDestroy", of_event},
      {"cuStreamWaitEvent", of_event}};
  for (const auto& [call, line] : calls) {
    const Played played = play({"use destroyed", call});
    INFO(call << ": " << played);
    CHECK(played.status == 128 + SIGABRT);
    CHECK(played.output.empty());
    CHECK(played.errors == line);
    CHECK(play({"use destroyed", call}, {{"SIM_CUDA_STRICT_HANDLES", "0"}}).output == "answers: 400\n");
  }
  for (const char* call : {"cuStreamQuery of none", "cuEventQuery of none"})
    CHECK(play({"use destroyed", call}).output == "answers: 400\n");
}

TEST_CASE("streams write words and wait for them", "[cuda][driver]") {
  const Played played = play({"words"});

  INFO(played);
  CHECK(played.output == "waits: 600\nwaited: 0\nodd address: 1\nto unregistered memory: 0\nsynchronise: 700\n");
}

TEST_CASE("what the simulated driver does not do, and what none does, is refused", "[cuda][driver]") {
  const Played played = play({"refusals"});

  INFO(played);
  CHECK(played.output ==
        "blocking stream: 801\ndefault stream: 801\nno blocks: 1\ntoo many threads: 1\ntoo much shared memory: 1\n"
        "more than there is: 1\ndevice memory as host memory: 1\n");
}

TEST_CASE("a multiprocessor has so many blocks at once as its registers and shared memory allow", "[cuda][driver]") {
  const Played played = play({"occupancy"});

  INFO(played);
  CHECK(played.output ==
        "tokenise: 7\nunpack: 32\nreconstruct: 4\n"
        "by 72 registers: 7\nby 36 registers: 24\nby 64 registers: 8\n"
        "by 47,000 bytes: 4\nby 12,000 bytes: 17\nby all of a block's bytes: 1\nwith 128 more of its own: 0\n"
        "of 1,024 threads: 0\nof 1,024 threads with fewer registers: 1\nof 1,025 threads: 0\n"
        "with more bytes than the function may have: 0\n");
}

TEST_CASE("a block that fits no multiprocessor is not launched, and nothing sticks", "[cuda][driver]") {
  const Played played = play({"launch too large"});

  INFO(played);
  CHECK(played.output == "launch: 701\nsynchronise: 0\n");
  CHECK(played.errors == "simulated CUDA: a launch of which no block fits a multiprocessor\n");
}

TEST_CASE("threads use a context at once, each with its stream", "[cuda][driver]") {
  const Played played = play({"threads"}, {{"SIM_CUDA_DELAY_US", "30"}});

  INFO(played);
  CHECK(played.status == 0);
  CHECK(played.output == "80 equal\n");
  CHECK(played.errors.empty());
}

TEST_CASE("an engine has room for so many, and lets the highest priority in first", "[cuda][driver]") {
  sim::Engine engine(2);
  std::vector<int> entered;
  const auto use = [&](int priority) {
    engine.enter(priority);
    entered.push_back(priority);
    engine.leave();
  };
  engine.enter(0);
  engine.enter(0);
  std::thread first(use, 0), second(use, -5), third(use, -1);
  while (engine.waiting() != 3) std::this_thread::yield();
  CHECK(entered.empty());

  engine.leave();
  for (std::thread* thread : {&first, &second, &third}) thread->join();

  CHECK(entered == std::vector{-5, -1, 0});
}

TEST_CASE("operations are told one by one where that is wanted", "[cuda][driver]") {
  const Played played = play({"round trip"}, {{"SIM_CUDA_TRACE", "1"}});

  CHECK(played.reports("simulated CUDA: stream 0: HtoD -> 0\nsimulated CUDA: stream 0: DtoD -> 0\n"));
}

}  // namespace
}  // namespace millrace
