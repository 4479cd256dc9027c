#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "daemon/pipeline/epoch/session_uses.h"

namespace millrace {
namespace {

// Writes down what it is told.
struct UsesRecorder : DatasetUses {
  struct Use : DatasetUse {
    Use(UsesRecorder& recorder, std::uint64_t number) : told(recorder.told), name(std::to_string(number)) {
      tell("begins");
    }
    ~Use() override { tell("goes"); }
    void epoch_begun(EpochBegun epoch, double) override { tell("epoch " + std::to_string(epoch.order.epoch)); }
    void foreseen(std::shared_ptr<const EpochPositions> next) override { tell(next ? "foreseen" : "not foreseen"); }
    void reached(std::uint64_t samples) override { tell("at " + std::to_string(samples)); }
    void epoch_ended(double) override { tell("ended"); }
    void tell(const std::string& what) const { told.push_back(name + " " + what); }

    std::vector<std::string>& told;
    std::string name;
  };
  std::unique_ptr<DatasetUse> begin(const Dataset& dataset) override {
    return std::make_unique<Use>(*this, static_cast<std::uint64_t>(dataset.number()));
  }
  std::vector<std::string> told;
};

using Told = std::vector<std::string>;
constexpr EpochStreamId kFirstEpoch{1}, kSecondEpoch{2};

Dataset used_dataset(std::uint64_t number, std::uint64_t fingerprint = 1) {
  return Dataset("/d", "", std::vector<Dataset::Entry>(8), {}, fingerprint, {}, {}, DatasetNumber{number});
}

EpochBegun epoch(std::uint64_t number, std::uint64_t seed = 7) {
  return {.order = {.samples = 8, .seed = seed, .epoch = number, .shuffle = Shuffle::kYes}, .samples = 8};
}

TEST_CASE("a session's epochs over one dataset are one use of it, until the session ends", "[pipeline]") {
  UsesRecorder recorder;
  {
    SessionUses uses(&recorder);
    uses.begin(kFirstEpoch, used_dataset(5), epoch(0), 1);
    uses.foreseen(kFirstEpoch, std::make_shared<const EpochPositions>());
    uses.reached(kFirstEpoch, 4);
    uses.ended(kFirstEpoch, 2);
    uses.begin(kSecondEpoch, used_dataset(5), epoch(1), 3);
    uses.reached(kFirstEpoch, 8);  // a stream that ended
    uses.reached(kSecondEpoch, 2);
  }
  REQUIRE(recorder.told ==
          Told{"5 begins", "5 epoch 0", "5 foreseen", "5 at 4", "5 ended", "5 epoch 1", "5 at 2", "5 goes"});
}

TEST_CASE("two epochs over one dataset at once are two uses", "[pipeline]") {
  UsesRecorder recorder;
  SessionUses uses(&recorder);
  uses.begin(kFirstEpoch, used_dataset(5), epoch(0), 1);
  uses.begin(kSecondEpoch, used_dataset(5), epoch(0), 1);
  uses.reached(kSecondEpoch, 3);

  REQUIRE(recorder.told == Told{"5 begins", "5 epoch 0", "5 begins", "5 epoch 0", "5 at 3"});
}

TEST_CASE("a new listing of a folder is a use of its own", "[pipeline]") {
  UsesRecorder recorder;
  SessionUses uses(&recorder);
  uses.begin(kFirstEpoch, used_dataset(5, 1), epoch(0), 1);
  uses.ended(kFirstEpoch, 2);
  uses.begin(kSecondEpoch, used_dataset(5, 2), epoch(1), 3);

  REQUIRE(recorder.told.back() == "5 epoch 1");
  REQUIRE(recorder.told[3] == "5 begins");
}

TEST_CASE("the next epoch is expected as many further as this one was", "[pipeline]") {
  UsesRecorder recorder;
  SessionUses uses(&recorder);
  const auto expected_after = [&](std::uint64_t number, std::uint64_t seed = 7, std::uint64_t reached = 0) {
    EpochBegun begun = epoch(number, seed);
    begun.reached = reached;
    const auto next = uses.begin(kFirstEpoch, used_dataset(5), std::move(begun), 1);
    uses.ended(kFirstEpoch, 2);
    return next ? std::optional(next->epoch) : std::nullopt;
  };

  REQUIRE(expected_after(4) == 5);
  REQUIRE(expected_after(5) == 6);
  REQUIRE(expected_after(8) == 11);
  REQUIRE(expected_after(8) == 8);
  REQUIRE(expected_after(8, 7, 3) == 9);  // resumed
  REQUIRE(expected_after(9) == 10);
  REQUIRE(expected_after(10, 8) == std::nullopt);  // a new seed each time
  REQUIRE(expected_after(10, 9) == std::nullopt);
}

TEST_CASE("a session with very many datasets is remembered for the last ones", "[pipeline]") {
  UsesRecorder recorder;
  SessionUses uses(&recorder);
  for (std::uint64_t number = 1; number <= 20; ++number) {
    uses.begin(kFirstEpoch, used_dataset(number), epoch(0), 1);
    uses.ended(kFirstEpoch, 2);
  }

  std::vector<std::string> gone;
  for (const std::string& line : recorder.told) {
    if (line.find("goes") != std::string::npos) gone.push_back(line);
  }
  REQUIRE(gone == Told{"1 goes", "2 goes", "3 goes", "4 goes"});
}

TEST_CASE("nobody is told of folders that are not known, and nobody is no error", "[pipeline]") {
  UsesRecorder recorder;
  SessionUses uses(&recorder), alone(nullptr);

  REQUIRE_FALSE(uses.begin(kFirstEpoch, used_dataset(0), epoch(0), 1));
  REQUIRE_FALSE(alone.begin(kFirstEpoch, used_dataset(5), epoch(0), 1));
  alone.reached(kFirstEpoch, 1);
  alone.ended(kFirstEpoch, 2);

  REQUIRE(recorder.told.empty());
}

}  // namespace
}  // namespace millrace
