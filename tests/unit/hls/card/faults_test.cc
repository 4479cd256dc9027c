// Simulated FPGA cards: failures to order, and the program that makes xclbins.
#include "hls/card/xclbin/connectivity.h"
#include "tests/unit/hls/card/rig.h"

namespace millrace {
namespace {

Played suffer(const std::string& faults) {
  return play({"suffer"}, {{"MILLRACE_CARD_FAULTS", faults}, {"MILLRACE_CARD_PROGRAM_MS", "0"}});
}

TEST_CASE("faults come at the commands that they are ordered for", "[fpga][card]") {
  CHECK(suffer("").output == "end\n");
  CHECK(suffer("1:crash@1,0:flip@13").output == "end\n");
  CHECK(suffer("0:crash@3").output == "3: state 9\nend\n");
  CHECK(suffer("0:hang@4").output == "4: state 3\nend\n");
  CHECK(suffer("0:wrong@5,0:flip@7").output == "5: completions\n7: tensors\nend\n");
  CHECK(suffer("0:flip%4,0:crash@6").output == "4: tensors\n6: state 9\n8: tensors\n12: tensors\nend\n");
}

TEST_CASE("faults that cannot be read end the process", "[fpga][card]") {
  for (const char* faults : {"crash@3", "0:melt@3", "0:crash@x", "0:slow=5years", "0:crash@0"}) {
    const Played played = suffer(faults);
    INFO(played);
    CHECK(played.status != 0);
    CHECK(played.reports(std::string("no rule of MILLRACE_CARD_FAULTS: ") + faults));
  }
}

TEST_CASE("a slow card is late", "[fpga][card]") {
  CHECK(play({"slow"}).output == "state 4, at once\n");
  CHECK(play({"slow"}, {{"MILLRACE_CARD_FAULTS", "0:slow=2000ms"}}).output == "state 4, late\n");
}

TEST_CASE("programming takes time, may be refused, and is not done twice", "[fpga][card]") {
  const Played played =
      play({"program"}, {{"MILLRACE_CARD_FAULTS", "0:refuse=2"}, {"MILLRACE_CARD_PROGRAM_MS", "1000"}});

  INFO(played);
  CHECK(played.output ==
        "refused\nrefused\nprogrammed\nanother: takes its time, the same again: at once\nnonsense: refused\n");
}

TEST_CASE("a card that died may stay away for a while", "[fpga][card]") {
  CHECK(play({"away"}, {{"MILLRACE_CARD_FAULTS", "0:away=3000ms"}}).output ==
        "state 9\nat once: away\nafter its time: state 4, right\n");
}

TEST_CASE("v++ is told of every unit, and of a bank for every pointer of the kernel table", "[fpga][card]") {
  for (const hls::Image& image : hls::kImages)
    for (const unsigned units : {1u, 2u, 4u}) {
      const std::string kernel = image.kernel;
      std::string expected = "[connectivity]\nnk=" + kernel + ":" + std::to_string(units) + ":" + kernel + "_1";
      for (unsigned unit = 2; unit <= units; ++unit) expected += "." + kernel + "_" + std::to_string(unit);
      expected += "\n";
      for (unsigned unit = 1; unit <= units; ++unit)
        for (const char* pointer : {"commands", "encoded", "tensors", "completions"})
          expected +=
              "sp=" + kernel + "_" + std::to_string(unit) + "." + pointer + ":DDR[" + std::to_string(unit - 1) + "]\n";
      CHECK(card::connectivity_text(image, units) == expected);
      CHECK(make_xclbin({"--connectivity", image.name, std::to_string(units)}).output == expected);
    }
}

TEST_CASE("an xclbin is the same whenever it is made, and another where anything in it is", "[fpga][card]") {
  const TempFolder folder;
  put_file(folder / "bits", "some bits");
  put_file(folder / "others", "some bitz");
  const auto make = [&](const std::string& image, const std::string& units, const std::string& bits) {
    const Played played = make_xclbin({image, units, folder / bits, folder / "out"});
    INFO(played);
    REQUIRE(played.status == 0);
    return contents_of(folder / "out");
  };
  const std::string first = make("jpeg", "2", "bits"), again = make("jpeg", "2", "bits");
  const std::string others[] = {make("jpeg", "1", "bits"), make("noop", "2", "bits"), make("jpeg", "2", "others")};

  CHECK((again == first));
  for (const std::string& other : others) CHECK((other.substr(kUuidInXclbin, 16) != first.substr(kUuidInXclbin, 16)));
}

TEST_CASE("the maker of xclbins says what it cannot make", "[fpga][card]") {
  CHECK(make_xclbin({"cat", "1", "/dev/null", "/dev/null"}).reports("no image is called cat"));
  CHECK(make_xclbin({"jpeg", "9", "/dev/null", "/dev/null"}).reports("9 is no number of compute units"));
  CHECK(make_xclbin({"jpeg", "1", "/nowhere", "/dev/null"}).reports("/nowhere cannot be read"));
  CHECK(make_xclbin({"jpeg", "1"}).reports("usage:"));
}

}  // namespace
}  // namespace millrace
