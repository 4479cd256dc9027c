// Scenes of work that goes well, and of hosts that forget something.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "tests/unit/hls/card/batch.h"

namespace millrace::card_scenes {
namespace {

int enumerate(Arguments) {
  say("%u cards", xrt::system::enumerate_devices());
  for (unsigned i = 0; i < xrt::system::enumerate_devices(); ++i)
    say("%s", xrt::device(i).get_info<xrt::info::device::name>().c_str());
  say("beyond: %s", thrown_by([] { const xrt::device none(xrt::system::enumerate_devices()); }).c_str());
  return 0;
}

int metadata(Arguments arguments) {
  const xrt::xclbin file(xclbin(arguments[0]));
  for (const auto& kernel : file.get_kernels()) {
    say("kernel %s", kernel.get_name().c_str());
    for (const auto& argument : kernel.get_args())
      say("%s at %#zx, %s", argument.get_name().c_str(), static_cast<std::size_t>(argument.get_offset()),
          argument.get_mems().empty() ? "scalar" : argument.get_mems()[0].get_tag().c_str());
    for (const auto& unit : kernel.get_cus())
      say("unit %s, %zu places", unit.get_name().c_str(), unit.get_args()[0].get_mems().size());
  }
  return 0;
}

struct Watch {
  std::atomic<int> calls{0}, completed{0};
};

void note_end(const void*, ert_cmd_state state, void* watch) {
  ++static_cast<Watch*>(watch)->calls;
  static_cast<Watch*>(watch)->completed += state == ERT_CMD_STATE_COMPLETED;
}

// On every unit of a card several at once.
struct Flight {
  Flight(unsigned card, Watch& watch) : device(card), uuid(device.load_xclbin(xclbin("acts-2"))) {
    for (const char* unit : {"answer:{answer_1}", "answer:{answer_2}"}) {
      kernels.emplace_back(device, uuid, unit);
      for (int i = 0; i < 3; ++i) {
        batches.emplace_back(device, kernels.back());
        batches.back().run.add_callback(ERT_CMD_STATE_COMPLETED, note_end, &watch);
      }
    }
  }
  xrt::device device;
  xrt::uuid uuid;
  std::deque<xrt::kernel> kernels;
  std::deque<Batch> batches;
};

int fly(Arguments) {
  Watch watch;
  std::deque<Flight> flights;
  for (unsigned card = 0; card < 2; ++card) flights.emplace_back(card, watch);
  int right = 0, rounds = 20;
  for (int round = 0; round < rounds; ++round) {
    std::uint8_t salt = static_cast<std::uint8_t>(round);
    for (Flight& flight : flights)
      for (Batch& batch : flight.batches) {
        batch.write(Act::kAdd, ++salt);
        batch.run.start();
      }
    for (Flight& flight : flights)
      for (Batch& batch : flight.batches) {
        const int state = end_of(batch.run);
        batch.read();
        right += state == ERT_CMD_STATE_COMPLETED && batch.answered(batch.salt_) && batch.added();
      }
  }
  for (int tries = 0; tries < 2000 && watch.calls < 12 * rounds; ++tries) usleep(1000);
  say("%d right, %d callbacks, %d of them completed", right, watch.calls.load(), watch.completed.load());
  return 0;
}

struct One {
  explicit One(const char* image = "acts-1", const char* unit = "answer")
      : device(0), uuid(device.load_xclbin(xclbin(image))), kernel(device, uuid, unit), batch(device, kernel) {}
  xrt::device device;
  xrt::uuid uuid;
  xrt::kernel kernel;
  Batch batch;
};

int forget_to_sync(Arguments) {
  One one;
  one.batch.write(Act::kAdd, 1);
  one.batch.go();
  say("results without a sync: %s", one.batch.added() || one.batch.answered(1) ? "there" : "not there");
  one.batch.read();
  say("with one: %s", one.batch.added() && one.batch.answered(1) ? "there" : "not there");
  one.batch.encoded.map<std::uint8_t*>()[0] ^= 0xff;
  one.batch.go();
  one.batch.read();
  say("bytes that were not synced: %s", one.batch.added() ? "not seen" : "seen");
  return 0;
}

int use_user_memory(Arguments) {
  One one;
  const int file = memfd_create("staging", 0);
  constexpr std::size_t kRoom = 16384;
  if (ftruncate(file, kRoom) != 0) return 1;
  auto* const host = static_cast<std::uint8_t*>(mmap(nullptr, kRoom, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  auto* const other = static_cast<std::uint8_t*>(mmap(nullptr, kRoom, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  xrt::bo staging(one.device, host, kRoom, xrt::bo::flags::normal, one.kernel.group_id(hls::kTensors));
  one.batch.run.set_arg(hls::kTensors, staging);
  one.batch.write(Act::kAdd, 5);
  say("state %d", one.batch.go());
  staging.sync(XCL_BO_SYNC_BO_FROM_DEVICE);
  bool right = true;
  for (std::uint32_t i = 0; i < kBytes; ++i) right &= other[i] == static_cast<std::uint8_t>(i * 7 + 6);
  say("through the other mapping: %s", right ? "right" : "wrong");
  say("not on a page: %s",
      thrown_by([&] { xrt::bo(one.device, host + 64, 4096, 0); }) == "nothing" ? "taken" : "refused");
  return 0;
}

int use_wrong_bank(Arguments) {
  One one("acts-2", "answer:{answer_1}");
  xrt::bo elsewhere(one.device, kBytes, 1);
  say("another bank's address: %s", elsewhere.address() == one.batch.tensors.address() ? "the same" : "another");
  one.batch.run.set_arg(hls::kTensors, elsewhere);
  one.batch.write(Act::kAdd, 2);
  say("state %d", one.batch.go());
  elsewhere.sync(XCL_BO_SYNC_BO_FROM_DEVICE);
  say("results in it: %s", elsewhere.map<std::uint8_t*>()[0] == 3 ? "yes" : "no");
  say("no such bank: %s", thrown_by([&] { xrt::bo(one.device, 4096, 3); }) == "nothing" ? "taken" : "refused");
  say("too large: %s",
      thrown_by([&] { xrt::bo(one.device, std::size_t{17} << 30, xrt::bo::flags::device_only, 0); }) == "nothing"
          ? "taken"
          : "refused");
  return 0;
}

struct Ended {
  std::atomic<int> calls{0};
  std::chrono::steady_clock::time_point at;
};

void note_time(const void*, ert_cmd_state, void* ended) {
  auto& self = *static_cast<Ended*>(ended);
  self.at = std::chrono::steady_clock::now();
  ++self.calls;
  self.calls.notify_one();
}

// From start() to the callback, for a batch of 256 images that are answered alone.
int measure(Arguments) {
  One one;
  Ended ended;
  one.batch.write(Act::kAnswer, 1, 0, hls::kMostImages);
  one.batch.run.add_callback(ERT_CMD_STATE_COMPLETED, note_time, &ended);
  std::vector<double> times;
  for (int round = 0; round < 5000; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    one.batch.run.start();
    ended.calls.wait(round);
    times.push_back(std::chrono::duration<double, std::micro>(ended.at - begin).count());
  }
  std::vector<double> waits;
  Batch second(one.device, one.kernel);
  second.write(Act::kAnswer, 1, 0, hls::kMostImages);
  for (int round = 0; round < 5000; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    second.run.start();
    second.run.wait();
    waits.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
  }
  std::sort(waits.begin(), waits.end());
  std::sort(times.begin(), times.end());
  say("us, from start to the end of wait(): p50 %.1f, p90 %.1f, p99 %.1f", waits[2500], waits[4500], waits[4950]);
  say("us, from start to callback: p50 %.1f, p90 %.1f, p99 %.1f", times[2500], times[4500], times[4950]);
  return 0;
}

constexpr Scene kScenes[] = {{"enumerate", enumerate},
                             {"metadata", metadata},
                             {"fly", fly},
                             {"forget to sync", forget_to_sync},
                             {"user memory", use_user_memory},
                             {"wrong bank", use_wrong_bank},
                             {"measure", measure}};

}  // namespace

std::span<const Scene> batch_scenes() {
  return kScenes;
}

}  // namespace millrace::card_scenes
