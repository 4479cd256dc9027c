// Simulated FPGA cards that several processes use, and what is ordered while they run.
#include <signal.h>

#include "tests/support/host/eventually.h"
#include "tests/unit/hls/card/processes.h"
#include "tests/unit/hls/card/rig.h"

namespace millrace {
namespace {

struct Shared {
  TempFolder folder;
  Environment environment{{"MILLRACE_CARD_CONTROL", folder / "control"}, {"MILLRACE_CARD_PROGRAM_MS", "0"}};

  Played order(std::vector<std::string> words) const {
    return run_program("millrace-card", std::move(words), environment);
  }
};

TEST_CASE("two processes use a card, and neither gets what the other has for itself", "[fpga][card]") {
  const Shared shared;
  const Process holder = start_scene({"hold"}, shared.environment);
  REQUIRE(holder.wait_for("held"));

  const Played beside = play({"try all"}, shared.environment);
  holder.kill(SIGKILL);
  REQUIRE(holder.wait());
  const Played after = play({"try all"}, shared.environment);

  INFO(beside << after);
  CHECK(beside.output ==
        "another image: refused\nthe first unit: refused\nthe second alone: refused\nthe second: state 4\n");
  CHECK(after.output == "another image: taken\nthe first unit: taken\nthe second alone: taken\nthe second: state 4\n");
}

TEST_CASE("a card's process ends with its host program, however that ends", "[fpga][card]") {
  const auto is_gone = [](pid_t pid) {  // or waits for somebody to ask how it ended
    const std::string status = contents_of("/proc/" + std::to_string(pid) + "/status");
    return status.empty() || status.find("State:\tZ") != std::string::npos;
  };
  for (const auto& [scene, killed] : {std::pair{"hold", true}, {"hold", false}, {"hold and fork", true}}) {
    const Process host = start_scene({scene});
    REQUIRE(host.wait_for("held"));
    const std::vector<pid_t> cards = processes_of_cards(host.pid());
    REQUIRE(cards.size() == 1);

    if (killed)
      host.kill(SIGKILL);
    else
      host.say("end");
    REQUIRE(host.wait());

    CHECK(eventually([&] { return is_gone(cards[0]); }, std::chrono::seconds(10)));
  }
}

TEST_CASE("a fault can be ordered while programs run, for the next command", "[fpga][card]") {
  for (const auto& [fault, seen] : {std::pair{"crash", "1: state 9\nend\n"},
                                    {"hang", "1: state 3\nend\n"},
                                    {"wrong", "1: completions\nend\n"},
                                    {"flip", "1: tensors\nend\n"}}) {
    const Shared shared;
    REQUIRE(shared.order({"0", fault}).status == 0);
    CHECK(play({"suffer"}, shared.environment).output == seen);
    CHECK(play({"suffer"}, shared.environment).output == "end\n");
  }
}

TEST_CASE("cards can be sent away, and told to refuse", "[fpga][card]") {
  const Shared shared;
  REQUIRE(shared.order({"0", "away", "60000"}).status == 0);
  CHECK(play({"slow"}, shared.environment).output.starts_with("exception: "));
  REQUIRE(shared.order({"0", "away", "0"}).status == 0);
  REQUIRE(shared.order({"0", "refuse", "1"}).status == 0);
  CHECK(play({"slow"}, shared.environment).output.starts_with("exception: "));
  CHECK(play({"slow"}, shared.environment).output == "state 4, at once\n");
  CHECK(shared.order({"0", "show"}).output == "1 commands, programmed\n");
}

TEST_CASE("sensors say what they are told to", "[fpga][card]") {
  const Shared shared;
  CHECK(play({"sensors"}, shared.environment).output == "45 C, 30.000000 W\n");
  REQUIRE(shared.order({"0", "celsius", "97"}).status == 0);
  REQUIRE(shared.order({"0", "milliwatt", "212500"}).status == 0);
  CHECK(play({"sensors"}, shared.environment).output == "97 C, 212.500000 W\n");
}

TEST_CASE("orders that are none are refused", "[fpga][card]") {
  const Shared shared;
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"0"}, {"0", "melt"}, {"x", "crash"}, {"99", "crash"}, {"0", "slow", "5ms"}})
    CHECK(shared.order(words).reports("usage:"));
  CHECK(run_program("millrace-card", {"0", "crash"}).reports("usage:"));
}

}  // namespace
}  // namespace millrace
