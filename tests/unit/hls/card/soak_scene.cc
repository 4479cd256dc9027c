// A host program that goes on whatever its cards do: one thread a card submits, XRT's own threads call back.
//
// But for one thing: where start() throws for a run that has a callback, XRT 2.13 keeps the command among those that it
// looks at, for ever, and neither the run nor its device may go any more. The process ends then, and somebody starts
// another.
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <deque>
#include <exception>
#include <memory>
#include <string>
#include <thread>

#include "tests/unit/hls/card/batch.h"

namespace millrace::card_scenes {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

struct Tally {
  std::atomic<long> started{0}, called{0}, right{0}, wrong{0}, failed{0}, aborted{0}, opened{0}, not_opened{0};
};

struct Flying {
  Flying(const xrt::device& device, const xrt::kernel& kernel, Tally& all) : batch(device, kernel), tally(all) {
    batch.run.add_callback(ERT_CMD_STATE_COMPLETED, note_end, this);
  }
  static void note_end(const void*, ert_cmd_state state, void* flying) {
    auto& self = *static_cast<Flying*>(flying);
    self.state = state;
    ++self.tally.called;
    self.flies.store(false, std::memory_order_release);
  }
  // False: it was refused.
  bool start(std::uint8_t salt) {
    batch.write(Act::kAdd, salt);
    flies = true;
    try {
      batch.run.start();
    } catch (const std::exception&) {
      return false;
    }
    ++tally.started;
    return true;
  }
  bool ends_until(Clock::time_point deadline) const {
    while (flies.load(std::memory_order_acquire) && Clock::now() < deadline) std::this_thread::sleep_for(50us);
    return !flies.load(std::memory_order_acquire);
  }

  Batch batch;
  Tally& tally;
  std::atomic<bool> flies{false};
  std::atomic<int> state{0};
};

struct OpenCard {
  OpenCard(unsigned number, Tally& tally) : device(number), uuid(device.load_xclbin(xclbin("acts-2"))) {
    for (const char* unit : {"answer:{answer_1}", "answer:{answer_2}"}) {
      kernels.emplace_back(device, uuid, unit);
      for (int i = 0; i < 3; ++i) flying.emplace_back(device, kernels.back(), tally);
    }
  }
  // Nothing may fly when a run goes: XRT would give its command to another.
  ~OpenCard() {
    for (Flying& one : flying) {
      if (one.ends_until(Clock::now())) continue;
      try {
        one.batch.run.abort();
      } catch (const std::exception&) {  // the card is dead, which ended it
      }
      ++one.tally.aborted;
      one.ends_until(Clock::now() + 2s);
    }
  }

  xrt::device device;
  xrt::uuid uuid;
  std::deque<xrt::kernel> kernels;
  std::deque<Flying> flying;
};

void say_tally(const Tally& tally) {
  say("%ld right, %ld wrong, %ld failed, %ld aborted, %ld times opened, %ld refused", tally.right.load(),
      tally.wrong.load(), tally.failed.load(), tally.aborted.load(), tally.opened.load(), tally.not_opened.load());
  say("%ld started, %ld called", tally.started.load(), tally.called.load());
}

constexpr int kStartAgain = 7;

[[noreturn]] void end_at_once(const Tally& tally) {
  static std::atomic_flag taken;
  while (taken.test_and_set()) std::this_thread::sleep_for(1s);  // the other thread ends the process
  std::this_thread::sleep_for(1s);                               // what is called back of other cards counts
  say_tally(tally);
  // Past ThreadSanitizer, which at any other exit reports threads of cards that have ended and are not joined yet.
  ::syscall(SYS_exit_group, kStartAgain);
  std::abort();
}

// False: the card is to be opened again.
bool fly_once(OpenCard& card, std::uint8_t& salt, Tally& tally) {
  for (Flying& one : card.flying)
    if (!one.start(++salt)) end_at_once(tally);
  const auto deadline = Clock::now() + 400ms;
  bool well = true;
  for (Flying& one : card.flying) {
    if (!one.ends_until(deadline)) return false;
    if (one.state != ERT_CMD_STATE_COMPLETED) {
      ++tally.failed;
      well = false;
      continue;
    }
    one.batch.read();
    ++(one.batch.answered(one.batch.salt_) && one.batch.added() ? tally.right : tally.wrong);
  }
  return well;
}

void use_card(unsigned number, Clock::time_point end, Tally& tally) {
  std::unique_ptr<OpenCard> card;
  std::uint8_t salt = 0;
  while (Clock::now() < end) {
    try {
      if (card == nullptr) {
        card = std::make_unique<OpenCard>(number, tally);
        ++tally.opened;
      }
      if (!fly_once(*card, salt, tally)) card.reset();
    } catch (const std::exception&) {
      tally.not_opened += card == nullptr;
      card.reset();
      std::this_thread::sleep_for(5ms);
    }
  }
}

int soak(Arguments arguments) {
  const auto end = Clock::now() + std::chrono::milliseconds(std::stol(std::string(arguments[0])));
  Tally tally;
  std::deque<std::thread> threads;
  for (unsigned card = 0; card < 2; ++card) threads.emplace_back(use_card, card, end, std::ref(tally));
  say("going");
  for (std::thread& thread : threads) thread.join();
  say_tally(tally);
  return 0;
}

constexpr Scene kSoakScenes[] = {{"soak", soak}};

}  // namespace

std::span<const Scene> soak_scenes() {
  return kSoakScenes;
}

}  // namespace millrace::card_scenes
