// How long a session takes to open: a large one, and another user's small one while the large one is being filled.
#include <sys/statvfs.h>

#include <thread>

#include "tests/bench/figures.h"
#include "tests/bench/rig.h"

namespace millrace::bench {
namespace {

constexpr std::uint32_t kLargeSlots = 64;
constexpr Bytes kLargeSlot{156'000'000};  // 10 GB in all
constexpr std::uint32_t kSmallSlots = 4;
constexpr Bytes kSmallSlot{5'000'000};  // 20 MB in all

bool has_room() {
  struct statvfs status {};
  return ::statvfs("/dev/shm", &status) == 0 &&
         status.f_bavail * status.f_frsize > (kLargeSlot * kLargeSlots).count * 2;
}

double open_ms(Rig& rig, std::uint32_t slots, Bytes slot_bytes, std::optional<Session>& session) {
  const auto begin = std::chrono::steady_clock::now();
  session =
      must(rig.client.open_session({.name = "opening", .slots = slots, .slot_bytes = slot_bytes}), "opening a session");
  return seconds_since(begin) * 1e3;
}

void wait_for_memory(Rig& rig) {
  for (;;) {
    const Statistics statistics = must(rig.client.statistics(), "asking for statistics");
    if (statistics.sessions.empty()) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

}  // namespace

void run_opening(const BenchOptions& options, const Report& report) {
  if (!has_room()) return report.progress("open.*: left out, /dev/shm has less than 20 GB free");
  const TinyFiles tiny(1);
  const std::uint32_t rounds = options.quick ? 2 : 11;
  std::vector<double> large, small;
  report.progress("opening sessions");
  for (std::uint32_t i = 0; i < rounds; ++i) {
    Rig rig = Rig::start(tiny.path(), 2);
    std::optional<Session> first, second;
    large.push_back(open_ms(rig, kLargeSlots, kLargeSlot, first));
    small.push_back(open_ms(rig, kSmallSlots, kSmallSlot, second));
    if (must(rig.client.statistics(), "asking for statistics").sessions.front().slots_not_ready == 0)
      give_up("the large session was filled before the small one was open");
    first.reset();
    second.reset();
    wait_for_memory(rig);
  }
  report.add({.name = "open.large_ms",
              .value = median(large),
              .unit = "ms",
              .rounds = rounds,
              .note = "10 GB in 64 slots; at most 200"});
  report.add({.name = "open.small_beside_ms",
              .value = median(small),
              .unit = "ms",
              .rounds = rounds,
              .note = "20 MB while those 10 GB are being filled; at most 50"});
}

}  // namespace millrace::bench
