// What each cause is called, what it says, and what it advises.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>

#include "daemon/observe/explain/scene.h"

namespace millrace {
namespace {

constexpr double kAllKept = 0.95;  // of what is looked for: a larger cache brings nothing

template <class... Values>
std::string words(const char* format, const Values&... values) {
  std::array<char, 768> text{};
  std::snprintf(text.data(), text.size(), format, values...);
  return text.data();
}

std::string of(double bytes) {
  return to_text(Bytes{static_cast<std::uint64_t>(std::max(0.0, bytes))});
}

std::string time_of(double seconds) {
  if (seconds >= 1) return words("%.1f s", seconds);
  return words(seconds >= 0.01 ? "%.0f ms" : "%.1f ms", seconds * 1000);
}

int percent(double share) {
  return static_cast<int>(std::lround(100 * share));
}

double of_batch(double seconds, const Scene& scene) {
  return scene.batches > 0 ? seconds / scene.batches : seconds;
}

// "43 ms a batch"; of a program that has got no batch, what it waits in all.
std::string wait_of(double wait, const Scene& scene) {
  return scene.batches > 0 ? time_of(of_batch(wait, scene)) + " a batch" : time_of(wait) + " by now";
}

void tell_loop(Cause& cause, const Scene& scene) {
  const double ready = of_batch(scene.waited.time(SessionState::kClient), scene);
  const double busy = scene.seconds() - scene.waited.time(SessionState::kClient) -
                      scene.waited.time(SessionState::kIdle) - scene.waited.time(SessionState::kRequest);
  cause.text = "Your loop takes " + time_of(of_batch(scene.seconds(), scene)) + " a batch and waits " +
               time_of(of_batch(scene.waited.waited, scene)) + " of these";
  cause.text += ready * scene.batches > 0.05 * scene.seconds()
                    ? "; for " + time_of(ready) + " every slot held a finished batch: Millrace waits for you."
                    : ": it hardly waits for Millrace.";
  cause.advice = "Nothing here: what is left to gain is in the loop itself.";
  cause.share = 1 - scene.waited.share();
  cause.images_per_second = scene.rate_with_lanes(scene.seconds() - busy);
  cause.figures = {{"loop_seconds_per_batch", "seconds", of_batch(scene.seconds() - scene.waited.waited, scene)},
                   {"ready_seconds_per_batch", "seconds", ready}};
}

void tell_disk(double wait, Cause& cause, const Scene& scene) {
  const Circumstances& around = scene.around;
  const double rate = scene.seconds() > 0 ? scene.bytes / scene.seconds() : 0;
  const double needed = scene.rate_with_lanes(wait) * scene.bytes_an_image();
  const double set = scene.bytes_an_image() * static_cast<double>(around.files);
  const auto memory = static_cast<double>(around.cache_memory.count);
  cause.text = "Files give " + of(rate) + "/s and you need " + of(needed) + "/s: you wait " + wait_of(wait, scene) +
               " for reading.";
  if (scene.images == 0) cause.text = "You wait " + wait_of(wait, scene) + " for files to be read.";
  if (scene.images > 0 && scene.bytes == 0) {  // what is kept stands in for the files
    cause.text = "No file was read: you wait " + wait_of(wait, scene) + " for what is kept to be read.";
    cause.advice =
        "More of `lanes.fetch_threads`; if it is kept in `cache.disk`, a faster disk or more `cache.memory`.";
    return;
  }
  if (set > 0 && memory > 0)
    cause.text += words(" `cache.memory` (%s) would hold %d %% of the set.", of(memory).c_str(),
                        percent(std::min(1.0, memory / set)));
  cause.advice = "A faster disk, or files of less bytes";
  if (!around.keeps)
    cause.advice += "; or `cache=\"packed\"` for this session, which keeps what was read.";
  else
    cause.advice += set > 0 && memory < set ? "; or a `cache.memory` of " + of(set) + ", which would hold the set."
                                            : "; or `cache.memory`, which keeps what was read.";
  cause.advice += " On a file server, more of `lanes.fetch_threads`.";
  cause.figures = {{"disk_bytes_per_second", "bytes", rate},
                   {"needed_bytes_per_second", "bytes", needed},
                   {"set_bytes", "bytes", set}};
}

void tell_files(Cause& cause, const Scene& scene) {
  const bool reads =
      scene.wait(SessionState::kReading) > scene.wait(SessionState::kMaking) + scene.wait(SessionState::kLaneTurn);
  const SlowFiles::Sums& sums = reads ? scene.around.reading : scene.around.making;
  double slow = 0, times = 0;
  for (const SlowFile& file : sums.slowest) {
    slow += std::chrono::duration<double>(file.took).count();
    times += file.times;
    cause.paths.push_back(file.name);
  }
  const double all = std::chrono::duration<double>(sums.all).count();
  const double others = std::max(0.0, all - slow) / std::max(1.0, static_cast<double>(sums.images) - times);
  const std::size_t files = sums.slowest.size();
  cause.text =
      words("%zu %s %d %% of the time for %s: %s each time, and all others %s.", files,
            files == 1 ? "file takes" : "files take", percent(all > 0 ? slow / all : 0),
            reads ? "reading" : "making images", time_of(slow / std::max(1.0, times)).c_str(), time_of(others).c_str());
  cause.advice = reads ? "Look at these files, and where they lie: a copy of them elsewhere may be read faster."
                       : "Make these pictures smaller once, or leave them out.";
  cause.figures = {{"slow_files", "", static_cast<double>(sums.slowest.size())},
                   {"slow_seconds", "seconds", slow / std::max(1.0, times)},
                   {"other_seconds", "seconds", others}};
}

void tell_others(Cause& cause, const Scene& scene) {
  const Circumstances& around = scene.around;
  const double mine = scene.lanes / scene.seconds(), all = scene.all_lanes / scene.seconds();
  cause.text = words("You have %.1f of %u %s, and other sessions have %.1f", mine, around.lanes,
                     around.lanes == 1 ? "lane" : "lanes", std::max(0.0, all - mine));
  if (around.others.empty()) {
    cause.text += ": they are your own.";
    cause.advice = "Fewer of your jobs at once, or more of `lanes.cpu`.";
  } else {
    const OtherUser& most = around.others.front();
    cause.text += words(": the weight of user %u is %u, and yours is %u.", most.uid, most.weight, around.weight);
    cause.advice = "`fair.weights` says who gets how much of the lanes; or fewer jobs at once, or more of `lanes.cpu`.";
  }
  cause.images_per_second = scene.rate_with_lanes_times(mine > 0 ? all / mine : 1);
  cause.figures = {{"own_lanes", "", mine},
                   {"other_lanes", "", std::max(0.0, all - mine)},
                   {"lanes", "", static_cast<double>(around.lanes)}};
}

void tell_own_work(double wait, Cause& cause, const Scene& scene) {
  const double decode = scene.lanes > 0 ? scene.decode / scene.lanes : 0;
  const bool decodes = decode >= 0.5, is_kept = scene.hits > kAllKept * (scene.hits + scene.misses);
  cause.text = words("Your images take %s of a lane each, %d %% of it in %s: %u %s %.0f a second.",
                     time_of(scene.lane_time_an_image()).c_str(), percent(decodes ? decode : 1 - decode),
                     decodes ? "decoding" : "resampling and augmenting", scene.around.lanes,
                     scene.around.lanes == 1 ? "lane makes" : "lanes make", scene.lanes_can());
  const std::string keep = !scene.around.keeps ? "`cache=\"packed\"` for this session, "
                           : is_kept           ? ""
                                               : "`cache.memory` to keep what was decoded, ";
  cause.advice = decodes ? "Smaller pictures or `fidelity=\"fast\"`, " + keep + "more of `lanes.cpu`, or a device."
                         : "Fewer or cheaper steps in the recipe, more of `lanes.cpu`, or a device.";
  cause.images_per_second = scene.rate_without(wait);
  cause.figures = {{"lane_seconds_per_image", "seconds", scene.lane_time_an_image()},
                   {"decode_share", "", decode},
                   {"lanes", "", static_cast<double>(scene.around.lanes)}};
}

void tell_cache(CauseCode code, Cause& cause, const Scene& scene) {
  const Circumstances& around = scene.around;
  const double missed = scene.hits + scene.misses > 0 ? scene.misses / (scene.hits + scene.misses) : 0;
  const double touched = scene.all_images > 0 ? std::min(1.0, scene.first_touches / scene.all_images) : 0;
  if (code == CauseCode::kFirstEpoch) {
    cause.text = words(
        "Of %d %% of the images nothing is kept yet, so their files are read and decoded: as in any "
        "first epoch.",
        percent(touched));
    cause.advice = "Nothing: later epochs use what is kept. `millrace cache warm` does it before the first one.";
  } else {
    cause.text = words(
        "`cache.memory` (%s) is full: %.0f images a second are dropped from it, and of %d %% of what is "
        "looked for nothing is kept.",
        to_text(around.cache_memory).c_str(), scene.evictions / std::max(0.001, scene.seconds()), percent(missed));
    cause.advice = "A larger `cache.memory`, or `cache.disk` beside it; a smaller set, or fewer sets at once.";
  }
  cause.figures = {{"missed_share", "", missed},
                   {"first_touch_share", "", touched},
                   {"cache_bytes", "bytes", static_cast<double>(around.cache_bytes.count)},
                   {"cache_memory_bytes", "bytes", static_cast<double>(around.cache_memory.count)}};
}

void tell_processors(CauseCode code, Cause& cause, const Scene& scene) {
  if (code == CauseCode::kCpuMax) {
    cause.text = words("The control group's `cpu.max` stops the daemon in %d %% of its periods.", percent(scene.cut));
    cause.advice =
        "Raise `cpu.max` (CPUQuota= of the unit, or the container's limit), or set `lanes.cpu` to what it "
        "allows.";
    cause.images_per_second = scene.rate_with_lanes_times(1 / std::max(0.02, 1 - scene.cut));
    cause.figures = {{"periods_cut_share", "", scene.cut}};
    return;
  }
  cause.text = words(
      "Other programs, your own among them, use %d %% of the processors, and lanes that could work are "
      "without one for %d %% of that time.",
      percent(scene.others_use), percent(scene.lacked));
  cause.advice = "Fewer threads in the other programs (OMP_NUM_THREADS, workers), or other processors for them.";
  cause.images_per_second = scene.rate_with_lanes_times(1 / std::max(0.02, 1 - scene.lacked));
  cause.figures = {{"others_processor_share", "", scene.others_use}, {"lanes_lacked_share", "", scene.lacked}};
}

void tell_device(CauseCode code, double wait, Cause& cause, const Scene& scene) {
  const Circumstances& around = scene.around;
  if (code == CauseCode::kDeviceLost) {
    cause.text = around.lost.value_or("a device") + " has lost its device: the processor makes its images.";
    cause.advice = "The daemon's log says why; `millrace devices` shows whether it is back.";
  } else if (code == CauseCode::kDeviceLeaves) {
    const double share = scene.made > 0 ? std::min(1.0, scene.left / scene.made) : 0;
    cause.text =
        words("A device leaves %d %% of your images to the processor (", percent(share)) + around.left_because + ").";
    cause.advice = "Images of a kind that the device makes; the reason above says what it does not.";
    cause.figures = {{"left_share", "", share}};
  } else {
    cause.text = "The device has your images, and you wait " + wait_of(wait, scene) + " for it.";
    cause.advice = "More of the device's lanes (`cuda.lanes`, `fpga.lanes`), another device, or cheaper images.";
  }
}

// Those that need few words.
void tell_plainly(CauseCode code, double wait, Cause& cause, const Scene& scene) {
  const Circumstances& around = scene.around;
  const std::string waits = "you wait " + wait_of(wait, scene);
  switch (code) {
    case CauseCode::kDraining:
      cause.text = "The daemon drains: it takes no new work.";
      cause.advice = "Wait until it is there again, or have an administrator call `millrace admin resume`.";
      break;
    case CauseCode::kRootHangs:
      cause.text = "A read hangs: " + waits + " for files of a root that does not answer.";
      cause.advice = "Look at the file server and its mount; the daemon's log names what hangs.";
      cause.paths = around.missing_roots;
      break;
    case CauseCode::kHostShort:
      cause.text = "The daemon lacks descriptors or memory to read files: " + waits + '.';
      cause.advice = "`millrace doctor` says what is short: LimitNOFILE=, or memory of the host or its control group.";
      break;
    case CauseCode::kSlotsHeld:
      cause.text = words("Your program holds %.1f of %u slots while it waits: Millrace has no room to work ahead.",
                         scene.held, around.slots);
      cause.advice = "Give batches back sooner, copy what is kept for longer, or open the session with more `slots`.";
      cause.figures = {{"slots_held", "", scene.held}, {"slots", "", static_cast<double>(around.slots)}};
      break;
    case CauseCode::kSlowSource:
      cause.text = "Your program names no images while it waits for some: " + waits + " for its own source of them.";
      cause.advice = "Make the source faster, read ahead in it, or give paths instead of bytes.";
      break;
    case CauseCode::kFilling:
      cause.text = words("The session's memory is being filled: %u of %u slots are not there yet.",
                         around.slots_not_ready, around.slots);
      cause.advice = "Nothing, it ends by itself; smaller or fewer slots are there sooner.";
      cause.figures = {{"slots_not_ready", "", static_cast<double>(around.slots_not_ready)}};
      break;
    case CauseCode::kListing:
      cause.text = "A dataset is being listed: " + time_of(wait) + " by now.";
      cause.advice = "Open a dataset once and keep it; on a slow file server, a list of files instead of a folder.";
      break;
    case CauseCode::kShuffling:
      cause.text = "The order of an epoch is being drawn: " + time_of(wait) + " by now.";
      cause.advice = "Nothing, it ends by itself.";
      break;
    case CauseCode::kEncodedInFlight:
      cause.text = "Reading pauses, for as many encoded bytes are under way as `memory.encoded_in_flight` (" +
                   to_text(around.encoded_in_flight) + ") allows: " + waits + '.';
      cause.advice = "Raise `memory.encoded_in_flight`, or use smaller files.";
      cause.figures = {{"encoded_in_flight_bytes", "bytes", static_cast<double>(around.encoded_in_flight.count)}};
      break;
    case CauseCode::kMemoryDecoding:
      cause.text = "Large pictures wait for memory, of which `memory.decoding` (" + to_text(around.decoding) +
                   ") has no more: " + waits + '.';
      cause.advice = "Raise `memory.decoding`, or make the pictures smaller once.";
      cause.figures = {{"memory_decoding_bytes", "bytes", static_cast<double>(around.decoding.count)}};
      break;
    case CauseCode::kOthersRead:
      cause.text = "Others' files are read, and yours wait for their turn: " + waits + '.';
      cause.advice = "More of `lanes.fetch_threads`, other `fair.weights`, or fewer jobs at once.";
      break;
    case CauseCode::kSettling:
      cause.text = "Finished batches wait to be handed over: " + waits + '.';
      cause.advice = "Larger batches cost less each; bad images in them have to be repaired.";
      break;
    default:
      cause.text = "Nothing was handed over in the last " + time_of(scene.seconds()) + ", and nobody waits.";
      cause.advice = "Nothing.";
      break;
  }
}

void tell(CauseCode code, double wait, Cause& cause, const Scene& scene) {
  switch (code) {
    case CauseCode::kLoopComputes:
      return tell_loop(cause, scene);
    case CauseCode::kSlowDisk:
      return tell_disk(wait, cause, scene);
    case CauseCode::kSlowFiles:
      return tell_files(cause, scene);
    case CauseCode::kOthersHaveLanes:
      return tell_others(cause, scene);
    case CauseCode::kOwnWork:
      return tell_own_work(wait, cause, scene);
    case CauseCode::kFirstEpoch:
    case CauseCode::kCacheTooSmall:
      return tell_cache(code, cause, scene);
    case CauseCode::kCpuMax:
    case CauseCode::kOtherPrograms:
      return tell_processors(code, cause, scene);
    case CauseCode::kDeviceLost:
    case CauseCode::kDeviceLeaves:
    case CauseCode::kDeviceBusy:
      return tell_device(code, wait, cause, scene);
    default:
      return tell_plainly(code, wait, cause, scene);
  }
}

}  // namespace

std::string_view cause_name(CauseCode code) {
  static constexpr std::array<std::string_view, 25> kNames{
      "draining",          "root_hangs",    "host_short",  "slots_held",        "slow_source",
      "filling_slots",     "listing",       "shuffling",   "encoded_in_flight", "memory_decoding",
      "device_lost",       "device_leaves", "device_busy", "cpu_max",           "other_programs",
      "others_have_lanes", "others_read",   "slow_files",  "cache_too_small",   "first_epoch",
      "slow_disk",         "own_work",      "settling",    "loop_computes",     "idle"};
  return kNames[static_cast<std::size_t>(code)];
}

Cause cause_of(CauseCode code, double wait, const Scene& scene) {
  Cause cause{.code = cause_name(code), .share = scene.waited.waited > 0 ? wait / scene.waited.waited : 0};
  const bool by_lanes = code == CauseCode::kCpuMax || code == CauseCode::kOtherPrograms ||
                        code == CauseCode::kDeviceLost || code == CauseCode::kDeviceLeaves ||
                        code == CauseCode::kFirstEpoch || code == CauseCode::kCacheTooSmall;
  if (wait > 0 && code != CauseCode::kDraining)
    cause.images_per_second = by_lanes ? scene.rate_without(wait) : scene.rate_with_lanes(wait);
  if (code == CauseCode::kDraining) cause.share = 1;
  tell(code, wait, cause, scene);
  if (scene.images == 0) cause.images_per_second = 0;
  return cause;
}

}  // namespace millrace
