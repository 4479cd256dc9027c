// millrace why: words and figures for people and programs, and what it says where there is nothing to say.
#include <csignal>

#include "tests/system/support/raw_mill.h"
#include "tests/system/support/raw_session.h"
#include "tests/system/why/why_mill.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;

Ran why(const Daemon& daemon, std::vector<std::string> more = {}) {
  std::vector<std::string> words{"millrace", "why", "--socket", daemon.socket()};
  words.insert(words.end(), more.begin(), more.end());
  return run(words);
}

TEST_CASE("millrace why has a paragraph a session, at 80 columns, the one that waits most first", "[system]") {
  const WhyMill mill({.side = 700});
  Session waits = mill.open(), idle = mill.open();
  Session computes =
      need(mill.daemon.connect().open_session({.job = "resnet", .slots = 4, .batch = 4, .recipe = Recipe::train(32)}));
  const Program busy([&] { need(waits.wait(need(waits.submit(mill.batch())))); });
  const Program calm([&] {
    need(computes.submit(mill.batch(1)));
    std::this_thread::sleep_for(300ms);
    need(computes.next());
  });
  REQUIRE(mill.says_first(computes.id(), "loop_computes"));

  const Ran all = why(mill.daemon);
  REQUIRE(all.status == 0);
  CAPTURE(all.output);
  const std::size_t first = all.output.find("session " + std::to_string(waits.id()) + " of user "),
                    second = all.output.find("session " + std::to_string(computes.id()) + " of user ");
  CHECK(first == 0);
  CHECK(second != std::string::npos);
  CHECK_THAT(all.output, Catch::Contains(", job \"resnet\": "));
  CHECK(all.output.find("session " + std::to_string(idle.id()) + " of user ") == std::string::npos);
  CHECK_THAT(all.output, Catch::Contains(" images/s without it\n") && Catch::Contains("\n        To do: "));
  std::istringstream lines(all.output);
  for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 80);

  const auto json = parsed(why(mill.daemon, {"--json", std::to_string(computes.id())}).output);
  const auto session = json.get_child("sessions").front().second;
  CHECK(session.get<std::uint64_t>("id") == computes.id());
  CHECK(session.get<std::string>("job") == "resnet");
  CHECK(session.get_child("findings").front().second.get<std::string>("code") == "loop_computes");
}

TEST_CASE("millrace why without sessions, of one that is gone, and without a daemon", "[system]") {
  const WhyMill mill;
  CHECK(why(mill.daemon).output == "no session is open\n");
  {
    const Session idle = mill.open();
    CHECK(why(mill.daemon).output == "no session asks for anything; 1 are open\n");
  }
  const Ran gone = why(mill.daemon, {"77"});
  CHECK(gone.status == 1);
  CHECK_THAT(gone.errors, Catch::Contains("there is no session 77 (any more)"));

  mill.daemon.kill(SIGKILL);
  REQUIRE(mill.daemon.wait());
  const Ran without = why(mill.daemon);
  CHECK(without.status == 3);
  CHECK_FALSE(without.errors.empty());
}

TEST_CASE("a client that does not say how long it waits is told by its session's own time", "[system]") {
  const RawMill mill;
  RawSession session(mill.daemon.socket(), {});
  for (std::uint64_t batch = 1; batch < 4; ++batch) {
    session.send(mill.submit(batch));
    session.send(release_of(session.receive().completed().handle()));
  }
  Client client = mill.daemon.connect();

  CHECK(eventually([&] { return need(client.statistics()).sessions.at(0).batches == 3; }));
  CHECK_FALSE(need(client.explain()).at(0).waits_told);
  CHECK_THAT(why(mill.daemon, {std::to_string(need(client.explain()).at(0).id)}).output,
             Catch::Contains("its client does not say how long it waits"));
}

TEST_CASE("ten minutes of figures are kept for those who ask for them", "[system]") {
  const WhyMill mill;
  Session session = mill.open();
  const Dataset dataset = need(session.open_dataset(mill.pictures()));
  const Program loop(epochs(session, dataset));
  Client client = mill.daemon.connect();

  CHECK(need(client.explain(session.id())).at(0).history.images_per_second.empty());
  CHECK(eventually([&] {
    const History history = need(client.explain(session.id(), true)).at(0).history;
    return history.images_per_second.size() >= 3 && history.images_per_second.back() > 0 && history.step == 1s &&
           history.waited.size() == history.images_per_second.size();
  }));
}

}  // namespace
}  // namespace millrace
