// Scenes of cards that fail, and what a host sees and must do.
#include <signal.h>
#include <unistd.h>

#include <memory>
#include <thread>

#include "tests/unit/hls/card/batch.h"
#include "tests/unit/hls/card/processes.h"

namespace millrace::card_scenes {
namespace {

using namespace std::chrono_literals;

struct Opened {
  explicit Opened(unsigned card = 0, const char* unit = "answer")
      : device(card), uuid(device.load_xclbin(xclbin("acts-1"))), kernel(device, uuid, unit), batch(device, kernel) {}
  xrt::device device;
  xrt::uuid uuid;
  xrt::kernel kernel;
  Batch batch;
};

// A round of a card that is opened for it.
void say_round(const char* when, unsigned card = 0) {
  Opened opened(card);
  opened.batch.write(Act::kAdd, 9);
  const int state = opened.batch.go();
  opened.batch.read();
  say("%s: state %d, %s", when, state, opened.batch.answered(9) && opened.batch.added() ? "right" : "wrong");
}

int refuse_addresses(Arguments) {
  Opened opened;
  opened.batch.write(Act::kAdd, 1);
  opened.batch.run.set_arg(hls::kTensorsBytes, kBytes + 1);
  say("a byte more than there is: state %d", opened.batch.go());
  opened.batch.run.set_arg(hls::kTensorsBytes, 0xffffffffu);
  say("4 GiB: state %d", opened.batch.go());
  opened.batch.run.set_arg(hls::kTensorsBytes, kBytes);
  xrt::bo odd(opened.batch.tensors, 4096, 4096);
  opened.batch.run.set_arg(hls::kTensors, odd);
  opened.batch.run.set_arg(hls::kTensorsBytes, kBytes - 4096);
  say("the rest of a buffer: state %d", opened.batch.go());
  opened.batch.run.set_arg(hls::kTensorsBytes, kBytes);
  say("more than the rest: state %d", opened.batch.go());
  opened.batch.run.set_arg(hls::kTensors, opened.batch.tensors);
  say("as it should be: state %d", opened.batch.go());
  return 0;
}

Act act_of(std::string_view name) {
  return name == "overrun" ? Act::kOverrun : name == "trespass" ? Act::kTrespass : Act::kCrash;
}

int crash(Arguments arguments) {
  {
    Opened opened;
    opened.batch.write(act_of(arguments[0]), 1, arguments[0] == "trespass" ? 1u << 20 : 0);
    say("state %d", opened.batch.go());
    say("start: %s", thrown_by([&] { opened.batch.run.start(); }) == "nothing" ? "taken" : "refused");
    say("sync: %s", thrown_by([&] { opened.batch.read(); }) == "nothing" ? "taken" : "refused");
    say("buffer: %s", thrown_by([&] { xrt::bo(opened.device, 4096, 0); }) == "nothing" ? "taken" : "refused");
    say("xclbin: %s",
        thrown_by([&] { opened.device.load_xclbin(xclbin("acts-1")); }) == "nothing" ? "taken" : "refused");
    say("opened beside: %s", thrown_by([] { Opened second; }) == "nothing" ? "taken" : "refused");
  }
  say_round("opened again");
  return 0;
}

int kill_card(Arguments) {
  {
    Opened opened;
    opened.batch.write(Act::kHang, 1);
    opened.batch.run.start();
    std::this_thread::sleep_for(50ms);
    say("%zu processes", processes_of_cards(getpid()).size());
    for (const pid_t pid : processes_of_cards(getpid())) kill(pid, SIGKILL);
    say("state %d", end_of(opened.batch.run));
  }
  say_round("opened again");
  return 0;
}

int hang(Arguments) {
  {
    Opened opened;
    Batch second(opened.device, opened.kernel), third(opened.device, opened.kernel);
    opened.batch.write(Act::kHang, 1);
    second.write(Act::kAdd, 2);
    third.write(Act::kAdd, 3);
    opened.batch.run.start();
    second.run.start();
    say("after 100 ms: %d, behind it %d", end_of(opened.batch.run, 100ms), end_of(second.run, 1ms));
    say("abort behind it: %d", second.run.abort());
    say("abort: %d", opened.batch.run.abort());
    third.run.start();
    say("the unit still hangs: %d", end_of(third.run, 100ms));
    say("abort: %d", third.run.abort());
  }
  say_round("opened again");
  return 0;
}

// 12 batches, and what became of each. Opens the card again where it must.
int suffer(Arguments) {
  auto opened = std::make_unique<Opened>();
  for (std::uint8_t round = 1; round <= 12; ++round) {
    opened->batch.write(Act::kAdd, round);
    opened->batch.run.start();
    const int state = end_of(opened->batch.run, 5s);
    if (state != ERT_CMD_STATE_COMPLETED) {
      say("%d: state %d", round, state);
      if (state < ERT_CMD_STATE_COMPLETED) opened->batch.run.abort();
      opened.reset();
      opened = std::make_unique<Opened>();
      continue;
    }
    opened->batch.read();
    const bool answered = opened->batch.answered(round), added = opened->batch.added();
    if (!answered || !added) say("%d:%s%s", round, answered ? "" : " completions", added ? "" : " tensors");
  }
  say("end");
  return 0;
}

int be_slow(Arguments) {
  Opened opened;
  opened.batch.write(Act::kAnswer, 1);
  const auto begin = std::chrono::steady_clock::now();
  const int state = opened.batch.go();
  say("state %d, %s", state, std::chrono::steady_clock::now() - begin >= 2s ? "late" : "at once");
  return 0;
}

int program(Arguments) {
  xrt::device device(0);
  for (int i = 0; i < 3; ++i)
    say("%s", thrown_by([&] { device.load_xclbin(xclbin("acts-1")); }) == "nothing" ? "programmed" : "refused");
  const auto begin = std::chrono::steady_clock::now();
  device.load_xclbin(xclbin("acts-2"));
  const auto time = std::chrono::steady_clock::now() - begin;
  device.load_xclbin(xclbin("acts-2"));
  const auto again = std::chrono::steady_clock::now() - begin - time;
  say("another: %s, the same again: %s", time >= 1s ? "takes its time" : "at once",
      again < 1s ? "at once" : "takes its time");
  say("nonsense: %s",
      thrown_by([&] { device.load_xclbin(std::string("/proc/self/exe")); }) == "nothing" ? "programmed" : "refused");
  return 0;
}

// A card that stays away for a while after it died.
int come_back(Arguments) {
  {
    Opened opened;
    opened.batch.write(Act::kCrash, 1);
    say("state %d", opened.batch.go());
  }
  say("at once: %s", thrown_by([] { Opened again; }) == "nothing" ? "there" : "away");
  std::this_thread::sleep_for(3100ms);
  say_round("after its time");
  return 0;
}

int fail_beside(Arguments) {
  Opened other(1);
  {
    Opened opened(0);
    opened.batch.write(Act::kCrash, 1);
    say("state %d", opened.batch.go());
  }
  other.batch.write(Act::kAdd, 2);
  say("the other card: state %d", other.batch.go());
  return 0;
}

constexpr Scene kFaultScenes[] = {{"addresses", refuse_addresses},
                                  {"crash", crash},
                                  {"kill", kill_card},
                                  {"hang", hang},
                                  {"suffer", suffer},
                                  {"slow", be_slow},
                                  {"program", program},
                                  {"away", come_back},
                                  {"beside", fail_beside}};

}  // namespace

std::span<const Scene> fault_scenes() {
  return kFaultScenes;
}

}  // namespace millrace::card_scenes
