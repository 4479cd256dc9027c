// What only the fake backend does: its options, its faults, its order.
#include <catch2/catch.hpp>

#include "daemon/backend/fake/fake_backend.h"
#include "tests/conformance/bench_of_backend.h"

namespace millrace {
namespace {

std::unique_ptr<Backend> fake_backend(const std::string& options) {
  return FakeBackend::create(*FakeOptions::parse(options));
}

}  // namespace

TEST_CASE("the fake backend reads its options", "[backend]") {
  const Result<FakeOptions> options = FakeOptions::parse("delay_us=250,fail_every=7,lose_after=20,depth=9,instant=1");

  REQUIRE(options);
  REQUIRE(options->delay == std::chrono::microseconds(250));
  REQUIRE(options->fail_every == 7);
  REQUIRE(options->lose_after == 20);
  REQUIRE(options->depth == 9);
  REQUIRE(options->instant);
  REQUIRE(FakeOptions::parse("")->depth == 4);
}

TEST_CASE("the fake backend names the option that it does not know", "[backend]") {
  for (const std::string text : {"delay", "delay_us=", "delay_us=-1", "delay_us=1x", "speed=3", "depth=0", "instant=2",
                                 "=3", ",", "depth=3,,"}) {
    const Result<FakeOptions> options = FakeOptions::parse(text);

    CAPTURE(text);
    REQUIRE_FALSE(options);
    REQUIRE(options.error().code == Code::kInvalid);
  }
}

TEST_CASE("the fake backend fails every n-th sample", "[backend]") {
  const std::unique_ptr<Backend> backend = fake_backend("fail_every=3");
  JobOnTheBench bench = std::move(small_jobs(1, 7)[0]);
  Collector collector;

  REQUIRE(backend->try_submit(bench.job(collector)));

  const Finished finished = collector.wait_for_one();
  for (std::size_t i = 0; i < 7; ++i) REQUIRE(finished.outcomes[i].error.has_value() == (i == 2 || i == 5));
  REQUIRE(finished.outcomes[2].error->message == "made to fail");
}

TEST_CASE("the fake backend completes jobs late and out of order", "[backend]") {
  const std::unique_ptr<Backend> backend = fake_backend("delay_us=30000");
  std::vector<JobOnTheBench> benches = small_jobs(3, 1);
  for (std::size_t i = 0; i < 3; ++i) benches[i].tasks[0].index = static_cast<std::uint32_t>(i);
  Collector collector;
  const auto begun = std::chrono::steady_clock::now();

  for (JobOnTheBench& bench : benches) REQUIRE(backend->try_submit(bench.job(collector)));

  const std::vector<Finished> finished = collector.wait_for(3);
  REQUIRE(std::chrono::steady_clock::now() - begun >= std::chrono::microseconds(60000));
  REQUIRE(finished[2].tasks[0].index == 1);  // the second job takes twice as long
}

TEST_CASE("the instant fake backend succeeds and leaves memory as it is", "[backend]") {
  const std::unique_ptr<Backend> backend = fake_backend("instant=1");
  JobOnTheBench bench = std::move(small_jobs(1, 3)[0]);
  Collector collector;

  REQUIRE(backend->try_submit(bench.job(collector)));

  const Finished finished = collector.wait_for_one();
  for (const SampleOutcome& outcome : finished.outcomes) REQUIRE_FALSE(outcome.error);
  for (const auto& tensor : bench.tensors) REQUIRE(tensor->untouched());
}

}  // namespace millrace
