// The model of an FPGA decoder: what a simulation of stages must do whatever the stages are, and how far it is from
// published designs.
#include "hls/model/dataflow.h"

#include <algorithm>
#include <catch2/catch.hpp>

namespace millrace::hls::model {
namespace {

constexpr double kClose = 1e-6;

// Stages in a row: `clocks[kind]` a token, each of which takes `sizes[kind]` of the FIFO behind it.
struct Row final : Work {
  std::vector<Clocks> times;
  std::vector<std::int64_t> sizes;
  std::vector<Token> done;
  Clocks last = 0;

  Clocks clocks(int kind, Token) const override { return times[static_cast<std::size_t>(kind)]; }
  Emission emission(int kind, Token) const override {
    const std::int64_t size = sizes[static_cast<std::size_t>(kind)];
    return {size, size, true};
  }
  void finished(int, std::size_t, Token token, Clocks now) override {
    done.push_back(token);
    last = now;
  }
};

struct Built {
  Dataflow flow;
  std::vector<std::size_t> fifos, stages;
};

// `tokens` at the first stage; between stages a FIFO of `depth` each; the last stage tells.
Built build(const Row& row, const std::vector<std::int64_t>& depths, std::uint32_t tokens, Clocks latency = 0) {
  Built built;
  built.fifos.push_back(built.flow.add_fifo("first", Dataflow::kEndless));
  for (const std::int64_t depth : depths) built.fifos.push_back(built.flow.add_fifo("between", depth));
  for (std::size_t i = 0; i < row.times.size(); ++i) {
    const bool is_last = i + 1 == row.times.size();
    built.stages.push_back(built.flow.add_stage({"stage",
                                                 static_cast<int>(i),
                                                 latency,
                                                 is_last,
                                                 {{built.fifos[i], is_last ? Dataflow::kNone : built.fifos[i + 1]}}}));
  }
  for (std::uint32_t i = 0; i < tokens; ++i) built.flow.push(built.fifos[0], {i, 0});
  return built;
}

Row row_of(std::vector<Clocks> times) {
  Row row;
  row.sizes.assign(times.size(), 1);
  row.times = std::move(times);
  return row;
}

TEST_CASE("a row of two stages takes what its slower one takes, and the other's first or last token", "[hls_model]") {
  for (const auto& [first, second] : {std::pair{3.0, 5.0}, {5.0, 3.0}, {4.0, 4.0}}) {
    Row row = row_of({first, second});
    Built built = build(row, {8}, 100, 7);
    built.flow.run(row);
    CHECK(row.last == Approx(7 + first + second + 99 * std::max(first, second)).margin(kClose));
    CHECK(row.done.size() == 100);
  }
}

TEST_CASE("room is taken from when a token begins, so that it has to cover the latency, too", "[hls_model]") {
  Row row = row_of({3, 5});
  Built built = build(row, {1}, 40, 7);
  built.flow.run(row);
  CHECK(row.last == Approx(40 * (3 + 7 + 5)).margin(kClose));
}

TEST_CASE("with room for one token a stage begins when the one behind it is done", "[hls_model]") {
  Row row = row_of({2, 5});
  Built one = build(row, {1}, 50), two = build(row, {2}, 50);
  one.flow.run(row);
  const Clocks with_one = row.last;
  two.flow.run(row);

  CHECK(with_one == Approx(50 * (2 + 5)).margin(kClose));  // neither works while the other does
  CHECK(row.last == Approx(2 + 50 * 5).margin(kClose));
  CHECK(one.flow.high_water(one.fifos[1]) == 1);
  CHECK(two.flow.high_water(two.fifos[1]) == 2);
}

TEST_CASE("what stages did adds up to the time that passed, and stops are laid to their cause", "[hls_model]") {
  Row row = row_of({2, 9, 4});
  Built built = build(row, {3, 3}, 64, 11);
  const Clocks end = built.flow.run(row);
  for (const std::size_t stage : built.stages) {
    const StageUse use = built.flow.use_of(stage);
    CHECK(use.busy + use.starved + use.output_full == Approx(end).margin(kClose));
    CHECK(use.tokens == 64);
  }
  CHECK(built.flow.use_of(built.stages[0]).busy == Approx(64 * 2).margin(kClose));
  CHECK(built.flow.use_of(built.stages[0]).output_full > 0.5 * end);  // the second one is slow
  CHECK(built.flow.use_of(built.stages[1]).output_full == 0);
  CHECK(built.flow.use_of(built.stages[2]).output_full == 0);
  CHECK(built.flow.use_of(built.stages[2]).starved > 0.5 * end);
}

TEST_CASE("tokens come out as often as they went in, in their order, and no FIFO holds more than it has room for",
          "[hls_model]") {
  Row row = row_of({1, 3, 2, 1});
  row.sizes = {5, 2, 3, 1};
  Built built = build(row, {17, 2, 7}, 500, 4);
  built.flow.run(row);
  REQUIRE(row.done.size() == 500);
  for (std::uint32_t i = 0; i < 500; ++i) CHECK(row.done[i].thing == i);
  const std::int64_t rooms[] = {Dataflow::kEndless, 17, 2, 7};
  for (std::size_t i = 0; i < built.fifos.size(); ++i) {
    CHECK(built.flow.high_water(built.fifos[i]) <= rooms[i]);
    CHECK(built.flow.left_in(built.fifos[i]) == 0);
  }
}

TEST_CASE("a stage serves its queues in turns, and a full one does not stop the others", "[hls_model]") {
  struct Two final : Work {
    std::vector<std::size_t> order;
    Clocks clocks(int kind, Token token) const override { return kind == 1 && token.thing == 0 ? 1000 : 1; }
    Emission emission(int, Token) const override { return {1, 1, true}; }
    void finished(int, std::size_t queue, Token, Clocks) override { order.push_back(queue); }
  } work;
  Dataflow flow;
  const std::size_t a = flow.add_fifo("a", Dataflow::kEndless), b = flow.add_fifo("b", Dataflow::kEndless);
  const std::size_t slow = flow.add_fifo("slow", 1), quick = flow.add_fifo("quick", 1);
  flow.add_stage({"shared", 0, 0, true, {{a, slow}, {b, quick}}});
  flow.add_stage({"slow", 1, 0, false, {{slow, Dataflow::kNone}}});
  flow.add_stage({"quick", 2, 0, false, {{quick, Dataflow::kNone}}});
  for (std::uint32_t i = 0; i < 10; ++i) flow.push(a, {0, i}), flow.push(b, {1, i});
  flow.run(work);

  REQUIRE(work.order.size() == 20);
  CHECK((work.order[0] == 0 && work.order[1] == 1));
  CHECK(std::count(work.order.begin(), work.order.begin() + 11, 1) == 10);  // all of b while a waits
}

}  // namespace
}  // namespace millrace::hls::model
