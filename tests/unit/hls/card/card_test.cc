// Simulated FPGA cards, seen by host programs of XRT.
#include <sstream>

#include "tests/unit/hls/card/rig.h"

namespace millrace {
namespace {

TEST_CASE("cards are found, as many as there are to be", "[fpga][card]") {
  CHECK(play({"enumerate"}, {{"MILLRACE_CARDS", "2"}}).output ==
        "2 cards\nmillrace_simulated_card_1_0\nmillrace_simulated_card_1_0\n"
        "beyond: Could not open device with index '2'\n");
  CHECK(play({"enumerate"}, {{"MILLRACE_CARDS", "0"}}).prints("0 cards"));
}

TEST_CASE("XRT reads in an xclbin what the kernel table says", "[fpga][card]") {
  std::ostringstream expected;
  expected << "kernel answer\n" << std::hex;
  for (const hls::Argument& argument : hls::kArguments)
    expected << argument.name << " at 0x" << argument.offset << ", "
             << (argument.access == hls::Access::kScalar ? "scalar" : "DDR[0]") << "\n";
  expected << "unit answer:answer_1, 1 places\nunit answer:answer_2, 1 places\n";

  CHECK(play({"metadata", "acts-2"}).output == expected.str());
}

TEST_CASE("batches in flight on two cards with two units each come back right, each with one callback",
          "[fpga][card]") {
  const Played played = play({"fly"}, {{"MILLRACE_CARDS", "2"}});

  INFO(played);
  CHECK(played.output == "240 right, 240 callbacks, 240 of them completed\n");
}

TEST_CASE("what is not synced is not there", "[fpga][card]") {
  CHECK(play({"forget to sync"}).output ==
        "results without a sync: not there\nwith one: there\nbytes that were not synced: not seen\n");
}

TEST_CASE("a buffer may be memory of the host's that another process maps", "[fpga][card]") {
  CHECK(play({"user memory"}).output == "state 4\nthrough the other mapping: right\nnot on a page: refused\n");
}

TEST_CASE("a buffer in another bank is copied by XRT, where its results stay; none is where no bank is",
          "[fpga][card]") {
  const Played played = play({"wrong bank"});

  INFO(played);
  CHECK(played.output ==
        "another bank's address: another\nstate 4\nresults in it: no\nno such bank: refused\ntoo large: refused\n");
  CHECK(played.reports("Allocating local copy"));
}

TEST_CASE("a kernel is not called with bytes that are not all in one buffer", "[fpga][card]") {
  CHECK(
      play({"addresses"}).output ==
      "a byte more than there is: state 5\n4 GiB: state 5\nthe rest of a buffer: state 4\nmore than the rest: state 5\n"
      "as it should be: state 4\n");
}

const std::string kDead =
    "state 9\nstart: refused\nsync: refused\nbuffer: refused\nxclbin: refused\nopened beside: refused\n"
    "opened again: state 4, right\n";

TEST_CASE("a kernel that crashes takes its card away until it is opened again", "[fpga][card]") {
  CHECK(play({"crash", "crash"}).output == kDead);
}

TEST_CASE("a kernel that leaves its buffers takes its card away", "[fpga][card]") {
  CHECK(play({"crash", "overrun"}).output == kDead);
  CHECK(play({"crash", "trespass"}).output == kDead);
}

TEST_CASE("a card whose process is killed answers that there is no response", "[fpga][card]") {
  CHECK(play({"kill"}).output == "1 processes\nstate 9\nopened again: state 4, right\n");
}

TEST_CASE("a card that dies is alone in it", "[fpga][card]") {
  CHECK(play({"beside"}, {{"MILLRACE_CARDS", "2"}}).output == "state 9\nthe other card: state 4\n");
}

TEST_CASE("a command that hangs can be aborted, and its unit hangs on until the card is opened again", "[fpga][card]") {
  CHECK(play({"hang"}).output ==
        "after 100 ms: 3, behind it 2\nabort behind it: 6\nabort: 6\nthe unit still hangs: 2\nabort: 6\n"
        "opened again: state 4, right\n");
}

TEST_CASE("one image follows another when nobody uses units, nor buffers in banks that it has not", "[fpga][card]") {
  CHECK(play({"swap"}).output ==
        "first image: state 4, its answer\nin use: refused\nstill in use: refused\nfree: taken\n"
        "second image: state 4, its answer\nother banks, with a buffer: refused\nwithout: taken\n");
}

TEST_CASE("a unit is one user's alone, or everybody's", "[fpga][card]") {
  CHECK(play({"share"}).output ==
        "exclusive, then shared: refused\nof the other unit: taken\nregisters: 10 at the address of commands\n"
        "shared twice: taken\nshared, then exclusive: refused\nexclusive when it is free: taken\nanother uuid: "
        "refused\n");
}

TEST_CASE("a unit's registers can be read and written by its only user", "[fpga][card]") {
  CHECK(play({"registers"}).output == "phase 77, control 0x2\nwritten: 3\n");
}

}  // namespace
}  // namespace millrace
