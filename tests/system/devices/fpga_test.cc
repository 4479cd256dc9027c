// A daemon with FPGA cards, which are simulated, under the real XRT library: the same pixels as without, whatever becomes of
// a card and of the process that owns it, and nothing left behind.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "tests/support/host/cards.h"
#include "tests/support/host/decoder_processes.h"
#include "tests/support/host/eventually.h"
#include "tests/support/host/temp_folder.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/support/pictures/test_images.h"
#include "tests/support/skip.h"
#include "tests/system/devices/card_mill.h"

namespace millrace {
namespace {

// The count of wanted samples is halved after each such time. A card is programmed once it is 64, which takes 7 samples a second.
constexpr auto kSwap = "swap_milliseconds = 5000\n";

bool no_cards() {
  if (has_cards()) return false;
  skip_loudly("FPGA cards: this build found no libxrt-dev of Debian's");
  return true;
}

}  // namespace

TEST_CASE("cards make the processor's pixels, bit by bit, and share the work", "[system][fpga]") {
  if (no_cards()) return;
  const CardMill mill({.cards = 2});

  const CardEpoch card = run_epoch(mill, ""), cpu = run_epoch(mill, "cpu");

  CHECK(card.errors.empty());
  CHECK(card.by_backend.size() == 2);
  CHECK(card.by_backend.at("fpga:0") + card.by_backend.at("fpga:1") == kCardImages);
  CHECK(card.tensors.size() == kCardImages);
  CHECK(card.tensors == cpu.tensors);
  CHECK(mill.owners().size() == 2);
}

TEST_CASE("a killed owner of a card costs no sample, and another one takes its place", "[system][fpga]") {
  if (no_cards()) return;
  const CardMill mill;
  const CardEpoch expected = run_epoch(mill, "cpu");
  const std::vector<pid_t> before = mill.owners();
  REQUIRE(before.size() == 1);
  int batches = 0;

  const CardEpoch made = run_epoch(mill, "", [&] {
    if (++batches == 2) ::kill(before[0], SIGKILL);
  });

  CHECK(made.errors.empty());
  CHECK(made.tensors == expected.tensors);
  CHECK(made.by_backend.at("cpu") > 0);
  REQUIRE(eventually([&] { return mill.is_ready(); }));
  CHECK(mill.owners().size() == 1);
  CHECK(mill.owners() != before);
  CHECK(run_epoch(mill, "").by_backend == std::map<std::string, int>{{"fpga:0", kCardImages}});
}

TEST_CASE("a card that is killed is lost, comes back, and costs no sample", "[system][fpga]") {
  if (no_cards()) return;
  const CardMill mill;
  const CardEpoch expected = run_epoch(mill, "cpu");
  const std::vector<pid_t> owners = mill.owners();
  REQUIRE(owners.size() == 1);
  const std::vector<pid_t> cards = mill.cards(owners[0]);
  REQUIRE(cards.size() == 1);
  int batches = 0;

  const CardEpoch made = run_epoch(mill, "", [&] {
    if (++batches == 2) ::kill(cards[0], SIGKILL);
  });

  CHECK(made.errors.empty());
  CHECK(made.tensors == expected.tensors);
  CHECK(mill.daemon.errors().find("backend fpga:0 has lost its device") != std::string::npos);
  REQUIRE(eventually([&] { return mill.is_ready(); }));
  CHECK(run_epoch(mill, "").by_backend == std::map<std::string, int>{{"fpga:0", kCardImages}});
}

TEST_CASE("cards that fail in other ways cost no sample", "[system][fpga]") {
  if (no_cards()) return;
  const std::string fault = GENERATE(as<std::string>{}, "0:crash@2", "0:hang@2", "0:wrong@2", "0:flip@2");
  CAPTURE(fault);
  const bool hangs = fault.find("hang") != std::string::npos;
  const CardMill mill({.faults = fault, .settings = hangs ? "hang_milliseconds = 500\n" : ""});
  const CardEpoch expected = run_epoch(mill, "cpu");

  const CardEpoch made = run_epoch(mill, "");

  CHECK(made.errors.empty());
  CHECK(made.tensors == expected.tensors);
  CHECK(mill.daemon.errors().find("backend fpga:0 has lost its device") != std::string::npos);
  CHECK(eventually([&] { return mill.is_ready(); }));
}

TEST_CASE("what a card's sensors say is among its figures, until it is lost", "[system][fpga]") {
  if (no_cards()) return;
  const CardMill mill({.ordered = true});
  order_fault(mill.control(), 0, "celsius 61");
  order_fault(mill.control(), 0, "milliwatt 42000");

  run_epoch(mill, "");

  CHECK(mill.daemon.metric("millrace_card_temperature_celsius") == 61);
  CHECK(mill.daemon.metric("millrace_card_power_watts") == 42);

  order_fault(mill.control(), 0, "crash");
  run_epoch(mill, "");

  CHECK(mill.daemon.metric("millrace_card_temperature_celsius") == 0);
}

TEST_CASE("devices say what a card is", "[system][fpga]") {
  if (no_cards()) return;
  const CardMill mill;

  const Device card = mill.device("fpga:0");

  CHECK(card.ready);
  CHECK_FALSE(card.name.empty());
  CHECK(card.detail.find("XRT 2.") != std::string::npos);
  const auto image = std::find_if(card.properties.begin(), card.properties.end(),
                                  [](const DeviceProperty& property) { return property.name == "image jpeg"; });
  REQUIRE(image != card.properties.end());
  CHECK(image->value.find("compute unit") != std::string::npos);
  CHECK(image->value.find("uuid") != std::string::npos);
}

TEST_CASE("a card is programmed for packed coefficients once most samples come so", "[system][fpga]") {
  if (skips_where_no_file_is_kept()) return;
  if (no_cards()) return;
  const CardMill mill({.side = 240, .settings = kSwap, .cache = "settled_seconds = 2\n"});
  std::this_thread::sleep_for(std::chrono::milliseconds(2'100));  // until files are older than what counts as stable
  const CardEpoch expected = run_epoch(mill, "cpu", {}, CacheUse::kPacked);
  REQUIRE(eventually([&] { return mill.daemon.metric("millrace_cache_entries") >= kCardImages; }));

  CardEpoch made;
  REQUIRE(eventually([&] {
    made = run_epoch(mill, "", {}, CacheUse::kPacked);
    return mill.daemon.metric("millrace_card_swaps_total") == 1 && made.by_backend["fpga:0"] == kCardImages;
  }));

  CHECK(made.errors.empty());
  CHECK(made.tensors == expected.tensors);
}

TEST_CASE("a request that names cards is made by them, whatever they are programmed for", "[system][fpga]") {
  if (no_cards()) return;
  const CardMill mill({.side = 240, .settings = "swap_milliseconds = 3000000\n", .cache = "settled_seconds = 2\n"});
  std::this_thread::sleep_for(std::chrono::milliseconds(2'100));
  const CardEpoch expected = run_epoch(mill, "cpu", {}, CacheUse::kPacked);
  REQUIRE(eventually([&] { return mill.daemon.metric("millrace_cache_entries") >= kCardImages; }));

  const CardEpoch made = run_epoch(mill, "fpga", {}, CacheUse::kPacked);

  CHECK(made.errors.empty());
  CHECK(made.by_backend == std::map<std::string, int>{{"fpga:0", kCardImages}});
  CHECK(made.tensors == expected.tensors);
  CHECK(mill.daemon.metric("millrace_card_swaps_total") == 0);
}

TEST_CASE("files that just changed are made by cards that are named, and one too large for them is an error",
          "[system][fpga]") {
  if (no_cards()) return;
  // Kept, and read each time all the same. A lane has 682 KiB for files.
  const CardMill mill(
      {.side = 240, .settings = "lanes = 8\nstaging = \"16 MiB\"\n", .cache = "settled_seconds = 3600\n"});
  write_file(mill.folder / "image_999.jpg", make_jpeg({.pixels = make_pixels(1600, 1200, 3, 1), .quality = 98}));
  REQUIRE(std::filesystem::file_size(mill.folder / "image_999.jpg") > 700'000);
  const CardEpoch expected = run_epoch(mill, "cpu", {}, CacheUse::kPacked);
  REQUIRE(expected.tensors.size() == kCardImages + 1);

  const CardEpoch made = run_epoch(mill, "fpga", {}, CacheUse::kPacked);

  CHECK(made.by_backend.at("fpga:0") > 0);
  REQUIRE(made.errors.size() == 1);  // which ends the epoch
  CHECK(made.errors.front().find("larger than a lane's part of fpga.staging") != std::string::npos);
}

TEST_CASE("time that a card takes to be programmed is not that of its samples", "[system][fpga]") {
  if (skips_where_no_file_is_kept()) return;
  if (no_cards()) return;
  const CardMill mill({.side = 240,
                       .settings = kSwap,
                       .cache = "settled_seconds = 2\n",
                       .limits = "time_milliseconds = 1500\n",
                       .program_milliseconds = 2000});
  std::this_thread::sleep_for(std::chrono::milliseconds(2'100));
  run_epoch(mill, "cpu", {}, CacheUse::kPacked);
  REQUIRE(eventually([&] { return mill.daemon.metric("millrace_cache_entries") >= kCardImages; }));

  std::vector<std::string> errors;
  REQUIRE(eventually([&] {
    const CardEpoch made = run_epoch(mill, "", {}, CacheUse::kPacked);
    errors.insert(errors.end(), made.errors.begin(), made.errors.end());
    return mill.daemon.metric("millrace_card_swaps_total") == 1;
  }));

  CHECK(errors.empty());
}

TEST_CASE("a file of an image that is no use is named, and the card has the other one", "[system][fpga]") {
  if (no_cards()) return;
  const TempFolder images;
  std::filesystem::copy_file(card_images() + "/jpeg.xclbin", images / "jpeg.xclbin");
  const std::string kind = GENERATE(as<std::string>{}, "empty", "cut short", "another kernel's");
  CAPTURE(kind);
  const std::string packed = images / "packed.xclbin";
  if (kind == "empty") std::ofstream(packed).flush();
  if (kind == "cut short") {
    std::filesystem::copy_file(card_images() + "/packed.xclbin", packed);
    std::filesystem::resize_file(packed, 3000);
  }
  if (kind == "another kernel's") std::filesystem::copy_file(card_images() + "/noop.xclbin", packed);
  const CardMill mill({.images = images.path()});

  const CardEpoch made = run_epoch(mill, "");

  CHECK(made.by_backend == std::map<std::string, int>{{"fpga:0", kCardImages}});
  CHECK(mill.daemon.errors().find("packed.xclbin") != std::string::npos);
}

TEST_CASE("nothing of the cards is left after the daemon", "[system][fpga]") {
  if (no_cards()) return;
  std::vector<pid_t> owners, cards;
  {
    const CardMill mill({.cards = 2});
    run_epoch(mill, "");
    owners = mill.owners();
    for (const pid_t owner : owners) {
      for (const pid_t card : mill.cards(owner)) cards.push_back(card);
    }
  }
  REQUIRE(owners.size() == 2);
  REQUIRE(cards.size() == 2);
  const auto has_ended = [](pid_t process) {  // though the machine's first process may not have reaped it
    const std::string state = status_line(process, "State");
    return state.empty() || state.find('Z') != std::string::npos;
  };
  for (const pid_t pid : owners) CHECK(eventually([&] { return has_ended(pid); }));
  for (const pid_t pid : cards) CHECK(eventually([&] { return has_ended(pid); }));
}

TEST_CASE("a card that is not there is named when the daemon does not start", "[system][fpga]") {
  if (no_cards()) return;
  const TempFolder folder;
  std::string told = "it started";
  try {
    const Daemon daemon({.roots = {folder.path()},
                         .fpga = "yes",
                         .fpga_settings = "devices = [\"7\"]\nimages = \"" + card_images() + "\"\n",
                         .env = card_environment(1, "")});
  } catch (const std::runtime_error& error) {
    told = error.what();
  }
  CHECK(told.find("fpga.devices: there is no card 7; there are") != std::string::npos);
}

}  // namespace millrace
