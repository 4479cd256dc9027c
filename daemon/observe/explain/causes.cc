#include "daemon/observe/explain/causes.h"

#include <algorithm>
#include <utility>

#include "daemon/observe/explain/scene.h"

namespace millrace {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr double kWaits = 0.05;     // a program that waits for less of its time does not wait
constexpr double kWorthIt = 0.05;   // of the waits, the least that is told
constexpr double kLanesBusy = 0.5;  // of their time: who else has them matters
constexpr double kNoticed = 0.1;    // of processors, lanes' time or periods: less is in the noise

// A file is slow among others that take a tenth of its time, and few files are a twentieth of all.
constexpr double kSlowerThanOthers = 10, kFew = 0.05, kMostOfTime = 0.3;

struct Claim {
  CauseCode code;
  double wait;  // seconds
};

double since(std::uint64_t then, std::uint64_t now) {
  return now > then ? static_cast<double>(now - then) : 0;
}

double seconds(std::chrono::nanoseconds then, std::chrono::nanoseconds now) {
  return std::max(0.0, Seconds(now - then).count());
}

double part(double some, double all) {
  return all > 0 ? std::clamp(some / all, 0.0, 1.0) : 0;
}

Scene scene_of(const SessionLook& then, const SessionLook& now, const DaemonLook& before, const DaemonLook& after,
               const Circumstances& around) {
  const HostLook &host = after.host, &host_before = before.host;
  const double busy = host.busy - host_before.busy, idle = host.idle - host_before.idle,
               own = host.own - host_before.own;
  const double ran = host.lanes_ran - host_before.lanes_ran, lacked = host.lanes_lacked - host_before.lanes_lacked;
  const double told = seconds(then.told, now.told);
  // The daemon's looks may be closer together: a session that has no looks of its own is as old as it is.
  const double apart = std::max(0.0, Seconds(after.at - before.at).count());
  const double all_of_it = apart > 0 ? std::max(0.0, Seconds(now.at - then.at).count()) / apart : 1;
  return {.around = around,
          .waited = waited_between(then, now),
          .batches = since(then.batches, now.batches),
          .images = since(then.images, now.images),
          .bytes = since(then.bytes_read, now.bytes_read),
          .held = told > 0 ? seconds(then.slot_waits, now.slot_waits) / told : 0,
          .lanes = seconds(then.lanes, now.lanes),
          .decode = seconds(then.decode, now.decode),
          .all_lanes = all_of_it * seconds(before.lanes, after.lanes),
          .made = since(then.made, now.made),
          .left = since(then.left, now.left),
          .all_images = since(before.images, after.images),
          .first_touches = since(before.first_touches, after.first_touches),
          .hits = since(before.cache_hits, after.cache_hits),
          .misses = since(before.cache_misses, after.cache_misses),
          .evictions = all_of_it * since(before.cache_evictions, after.cache_evictions),
          .shortages = since(before.shortages, after.shortages),
          .others_use = part(busy - own, busy + idle),
          .lacked = part(lacked, ran + lacked),
          .cut = part(since(host_before.periods_cut, host.periods_cut), since(host_before.periods, host.periods))};
}

// How much of the time that images took was that of a few slow files.
double of_few(const SlowFiles::Sums& sums) {
  double slow = 0, times = 0;
  for (const SlowFile& file : sums.slowest) {
    slow += Seconds(file.took).count();
    times += file.times;
  }
  const auto images = static_cast<double>(sums.images);
  const double all = Seconds(sums.all).count(), others = images - times;
  if (times == 0 || others <= 0 || times > std::max(1.0, kFew * images)) return 0;
  const double of_others = std::max(0.0, all - slow) / others;
  return slow / times >= kSlowerThanOthers * of_others && part(slow, all) >= kMostOfTime ? part(slow, all) : 0;
}

// What the program holds leaves one slot at most to work with.
bool holds_slots(const Scene& scene) {
  return scene.around.slots > 2 && scene.held >= scene.around.slots - 1.25;
}

// Who is to blame for what the program waits for lanes, each for a part of what is left.
void blame_for_lanes(const Scene& scene, double wait, std::vector<Claim>& claims) {
  const auto blame = [&](CauseCode code, double its) {
    claims.push_back({code, wait * its});
    wait -= wait * its;
  };
  if (scene.cut >= kNoticed) blame(CauseCode::kCpuMax, scene.cut);
  if (scene.lacked >= kNoticed && scene.others_use >= kNoticed) blame(CauseCode::kOtherPrograms, scene.lacked);
  const bool busy = scene.all_lanes >= kLanesBusy * scene.around.lanes * scene.seconds();
  if (busy) blame(CauseCode::kOthersHaveLanes, part(scene.all_lanes - scene.lanes, scene.all_lanes));
  if (scene.around.lost) blame(CauseCode::kDeviceLost, 1);
  if (scene.around.has_device) blame(CauseCode::kDeviceLeaves, part(scene.left, scene.made));
  blame(CauseCode::kSlowFiles, of_few(scene.around.making));
  claims.push_back({CauseCode::kOwnWork, wait});
}

// What is kept would have spared the work on files that `wait` was for.
void blame_cache(const Scene& scene, double wait, std::vector<Claim>& claims) {
  const Circumstances& around = scene.around;
  if (around.cache_memory.count == 0 || !around.keeps) return;
  const bool full = scene.evictions > 0 || around.cache_bytes.count > around.cache_memory.count / 10 * 9;
  const double untouched = part(scene.first_touches, scene.all_images);
  const double missed = std::max(untouched, part(scene.misses, scene.hits + scene.misses));
  claims.push_back({full ? CauseCode::kCacheTooSmall : CauseCode::kFirstEpoch, wait * (full ? missed : untouched)});
}

std::vector<Claim> claims_of(const Scene& scene) {
  using enum SessionState;
  std::vector<Claim> claims;
  const double lanes = scene.wait(kMaking) + scene.wait(kLaneTurn), reading = scene.wait(kReading);
  const double slow_reads = reading * of_few(scene.around.reading);
  claims.push_back({CauseCode::kSlotsHeld, scene.wait(kClient) + (holds_slots(scene) ? lanes + reading : 0)});
  claims.push_back({CauseCode::kSlowSource, scene.wait(kRequest)});
  claims.push_back({CauseCode::kFilling, scene.wait(kFilling)});
  claims.push_back({CauseCode::kListing, scene.wait(kListing)});
  claims.push_back({CauseCode::kShuffling, scene.wait(kShuffling)});
  claims.push_back(
      {scene.around.other_sessions == 0 ? CauseCode::kSlowDisk : CauseCode::kOthersRead, scene.wait(kReadTurn)});
  claims.push_back({CauseCode::kEncodedInFlight, scene.wait(kReadBudget)});
  claims.push_back({scene.shortages > 0 ? CauseCode::kHostShort : CauseCode::kRootHangs, scene.wait(kHost)});
  claims.push_back({CauseCode::kMemoryDecoding, scene.wait(kDecodingBudget)});
  claims.push_back({CauseCode::kDeviceBusy, scene.wait(kDevice)});
  claims.push_back({CauseCode::kSettling, scene.wait(kSettling)});
  claims.push_back({CauseCode::kSlowFiles, slow_reads});
  claims.push_back({CauseCode::kSlowDisk, reading - slow_reads});
  blame_for_lanes(scene, lanes, claims);
  const auto own = std::ranges::find(claims, CauseCode::kOwnWork, &Claim::code);
  blame_cache(scene, own->wait + reading - slow_reads, claims);
  return claims;
}

// Those of one code together, the dearest first.
std::vector<Claim> sorted(const std::vector<Claim>& claims) {
  std::vector<Claim> sums;
  for (const Claim& claim : claims) {
    const auto same = std::ranges::find(sums, claim.code, &Claim::code);
    if (same == sums.end())
      sums.push_back(claim);
    else
      same->wait += claim.wait;
  }
  std::ranges::sort(sums, std::ranges::less(), &Claim::code);
  std::ranges::stable_sort(sums, std::ranges::greater(), &Claim::wait);
  return sums;
}

}  // namespace

Explained explain(const SessionLook& then, const SessionLook& now, const DaemonLook& daemon_then,
                  const DaemonLook& daemon_now, const Circumstances& around) {
  const Scene scene = scene_of(then, now, daemon_then, daemon_now, around);
  const double waited = scene.waited.waited;
  Explained explained{.seconds = scene.seconds(),
                      .images_per_second = scene.rate(),
                      .waited = scene.waited.share(),
                      .waits_told = scene.waited.told};
  std::vector<Cause>& causes = explained.causes;
  if (around.drains) causes.push_back(cause_of(CauseCode::kDraining, waited, scene));
  if (explained.waited >= kWaits) {
    for (const Claim& claim : sorted(claims_of(scene)))
      if (claim.wait >= kWorthIt * waited) causes.push_back(cause_of(claim.code, claim.wait, scene));
  }
  if (!causes.empty()) return explained;
  const bool idle = scene.images == 0 || scene.waited.time(SessionState::kIdle) > 0.9 * scene.seconds();
  causes.push_back(cause_of(idle ? CauseCode::kIdle : CauseCode::kLoopComputes, 0, scene));
  return explained;
}

}  // namespace millrace
