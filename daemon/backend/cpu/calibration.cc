#include "daemon/backend/cpu/calibration.h"

#include <time.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "daemon/backend/cpu/calibration_file.h"
#include "daemon/backend/cpu/calibration_picture.h"
#include "daemon/backend/cpu/image_maker.h"
#include "daemon/cache/seek_cache.h"
#include "daemon/observe/counters.h"

namespace millrace {
namespace {

using kernels::Target;
using kernels::jpeg::SegmentPath;
using kernels::jpeg::Streams;

constexpr std::size_t kMostRounds = 9;
constexpr std::chrono::milliseconds kFirstBudget{100}, kIndexedBudget{50};
constexpr Size kFirstPicture{352, 264};
constexpr Size kIndexedPicture{512, 384};  // a crop has enough pieces for lanes, as those of photographs do
constexpr double kAsGood = 1.05;           // less than this apart is noise
constexpr double kFailed = 1e9;            // microseconds
constexpr Bytes kIndexMemory = 16_MiB;
constexpr Size kOutput{224, 224};

Recipe training_recipe() {
  Recipe recipe;
  recipe.resize = ExactSize{kOutput};
  return recipe;
}

double thread_microseconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) * 1e-3;
}

// What a training sample asks of a lane: a crop of the picture, from below its top, made smaller.
class Trial {
 public:
  explicit Trial(const CalibrationPicture& picture) : out_(image_bytes(recipe_, kOutput).count) {
    EncodedBytes bytes(picture.jpeg.size());
    std::memcpy(bytes.writable().data(), picture.jpeg.data(), picture.jpeg.size());
    const auto width = static_cast<std::int32_t>(picture.info.stored.width);
    const auto height = static_cast<std::int32_t>(picture.info.stored.height);
    task_.image = EncodedImage{std::move(bytes), picture.info};
    task_.geometry = {
        .crop = {width / 8, height / 8, width * 3 / 4, height * 3 / 4},
        .resized = kOutput,
        .window = {0, 0, static_cast<std::int32_t>(kOutput.width), static_cast<std::int32_t>(kOutput.height)}};
    task_.out = out_;
  }

  double microseconds(ImageWorkspace& workspace) {
    const double begin = thread_microseconds();
    const SampleOutcome outcome = make_image(task_, recipe_, SampleLimits{}, workspace);
    return outcome.error ? kFailed : thread_microseconds() - begin;
  }

 private:
  const Recipe recipe_ = training_recipe();
  std::vector<std::byte> out_;
  SampleTask task_;
};

// One variant and how long each of its rounds took.
class Racer {
 public:
  Racer(const CpuVariant& variant, Touch touch)
      : cache_({.memory = kIndexMemory, .disk = Bytes{0}, .state_dir = "", .check = {}}, counters_),
        workspace_(JpegPath::kFastest, variant, touch == Touch::kIndexed ? &cache_ : nullptr) {}

  // Buffers and tables grow, and indexes are made: the next round is faster.
  void warm_up(std::span<const std::unique_ptr<Trial>> trials) { static_cast<void>(round(trials)); }
  void run(std::span<const std::unique_ptr<Trial>> trials) { rounds_.push_back(round(trials)); }
  const std::vector<double>& rounds() const { return rounds_; }

 private:
  double round(std::span<const std::unique_ptr<Trial>> trials) {
    double sum = 0;
    for (const auto& trial : trials) sum += trial->microseconds(workspace_);
    return sum;
  }

  Counters counters_;
  SeekCache cache_;
  ImageWorkspace workspace_;
  std::vector<double> rounds_;
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// The same variants, in whatever order.
bool times_all(std::span<const Timing> timings, std::span<const CpuVariant> variants) {
  if (timings.size() != variants.size()) return false;
  return std::all_of(variants.begin(), variants.end(), [&](const CpuVariant& variant) {
    return std::any_of(timings.begin(), timings.end(), [&](const Timing& timing) { return timing.variant == variant; });
  });
}

// `timings`: what was remembered; afterwards, what counts, empty without a choice or without memory. true: measured.
bool decide(std::span<const CpuVariant> choices, Touch touch, std::vector<Timing>& timings) {
  if (choices.size() == 1) timings.clear();
  if (choices.size() == 1 || times_all(timings, choices)) return false;
  timings = time_variants(choices, touch, touch == Touch::kFirst ? kFirstBudget : kIndexedBudget);
  return true;
}

CpuVariant best_of(std::span<const CpuVariant> choices, std::span<const Timing> timings) {
  return timings.empty() ? choices.front() : timings.front().variant;
}

// What becomes of a measurement that took so long, for people.
std::string keep(const CalibrationOptions& options, const CalibrationKey& key, const Timings& timings,
                 std::chrono::steady_clock::duration took) {
  std::string text =
      "measured at start in " + std::to_string(std::chrono::round<std::chrono::milliseconds>(took).count()) + " ms";
  const CpuWish& wish = options.wish;
  const bool whole = !wish.target && !wish.streams && !wish.segments;  // a part of it would not serve the next start
  if (!whole || options.state_dir.empty()) return text;
  const Result<void> kept = remember_timings(options.state_dir, key, timings);
  return text +
         (kept ? ", kept in " + calibration_path(options.state_dir, key) : ", not kept: " + kept.error().message);
}

}  // namespace

Result<std::vector<CpuVariant>> variants(const CpuWish& wish) {
  const bool lanes = wish.segments == SegmentPath::kVectors;
  const std::optional<Target> target = lanes && !wish.target ? Target::kAvx512 : wish.target;
  if (lanes && target != Target::kAvx512)
    return Error{Code::kInvalid, "cpu.indexed: only cpu.target = \"avx512\" has lanes; set \"auto\" or \"turns\""};
  if (target && !kernels::is_available(*target)) {
    return Error{Code::kInvalid, std::string(lanes ? "cpu.indexed" : "cpu.target") + ": this processor lacks " +
                                     std::string(kernels::name_of(*target)) + "; set \"auto\", or what it has"};
  }
  std::vector<CpuVariant> found;
  const std::vector<Target> targets = kernels::available_targets();
  for (auto one = targets.rbegin(); one != targets.rend(); ++one) {
    if (target && *one != *target) continue;
    for (const Streams streams : {Streams::kTwo, Streams::kOne}) {
      const bool one_is_all = *one == Target::kScalar && streams == Streams::kTwo && !wish.streams;
      if (!one_is_all && (!wish.streams || streams == *wish.streams)) found.push_back({*one, streams, {}});
    }
  }
  return found;
}

std::vector<CpuVariant> indexed_variants(const CpuVariant& chosen, const CpuWish& wish) {
  const auto with = [&](SegmentPath path) { return CpuVariant{chosen.target, chosen.streams, path}; };
  if (chosen.target == Target::kScalar) return {chosen};
  if (wish.segments) return {with(*wish.segments)};
  if (chosen.target != Target::kAvx512) return {with(SegmentPath::kTurns)};
  const bool lanes_first = kernels::jpeg::usual_segment_path(chosen.target) == SegmentPath::kVectors;
  std::vector<CpuVariant> found{with(SegmentPath::kTurns), with(SegmentPath::kVectors)};
  if (lanes_first) std::swap(found[0], found[1]);
  return found;
}

std::vector<Timing> time_variants(std::span<const CpuVariant> variants, Touch touch, std::chrono::milliseconds budget) {
  const auto end = std::chrono::steady_clock::now() + budget;
  std::vector<std::unique_ptr<Trial>> trials;
  const Size size = touch == Touch::kFirst ? kFirstPicture : kIndexedPicture;
  for (const CalibrationPicture& picture : calibration_pictures(size))
    trials.push_back(std::make_unique<Trial>(picture));
  if (trials.empty()) return {};
  std::vector<std::unique_ptr<Racer>> racers;
  for (const CpuVariant& variant : variants) racers.push_back(std::make_unique<Racer>(variant, touch));
  for (const auto& racer : racers) racer->warm_up(trials);
  std::size_t round = 0;
  do {
    for (const auto& racer : racers) racer->run(trials);
  } while (++round < kMostRounds && std::chrono::steady_clock::now() < end);
  std::vector<std::vector<double>> rounds;
  for (const auto& racer : racers) rounds.push_back(racer->rounds());
  return ranked(variants, rounds);
}

std::vector<Timing> ranked(std::span<const CpuVariant> variants, std::span<const std::vector<double>> microseconds) {
  const std::vector<double>& usual = microseconds.front();
  const double usually = median(usual);
  std::vector<Timing> timings;
  for (std::size_t i = 0; i < variants.size(); ++i) {
    std::vector<double> ratios;  // neighbours in time: what else the processor does concerns both
    for (std::size_t round = 0; round < usual.size(); ++round) ratios.push_back(microseconds[i][round] / usual[round]);
    timings.push_back({variants[i], usually * median(std::move(ratios))});
  }
  const auto faster = [](const Timing& a, const Timing& b) { return a.microseconds < b.microseconds; };
  const double least = std::min_element(timings.begin(), timings.end(), faster)->microseconds;
  const auto best = std::find_if(timings.begin(), timings.end(),
                                 [&](const Timing& timing) { return timing.microseconds <= least * kAsGood; });
  std::rotate(timings.begin(), best, best + 1);
  std::stable_sort(timings.begin() + 1, timings.end(), faster);
  return timings;
}

Result<Calibration> calibrate(const CalibrationOptions& options) {
  MILLRACE_TRY(const std::vector<CpuVariant> choices, variants(options.wish));
  const CalibrationKey key{processor_model(), options.version};
  const auto begin = std::chrono::steady_clock::now();
  Calibration result;
  Timings& timings = result.timings;
  if (!options.state_dir.empty()) timings = remembered_timings(options.state_dir, key).value_or(Timings{});
  const bool first = decide(choices, Touch::kFirst, timings.first);
  const std::vector<CpuVariant> indexed_choices = indexed_variants(best_of(choices, timings.first), options.wish);
  const bool indexed = decide(indexed_choices, Touch::kIndexed, timings.indexed);
  result.variant = best_of(indexed_choices, timings.indexed);
  const bool without = timings.first.empty() && timings.indexed.empty();
  if (!first && !indexed) {
    result.source = without ? "there is nothing to choose from"
                            : "measured before, see " + calibration_path(options.state_dir, key);
  } else {
    result.source = without ? "not measured: there was no memory for it"
                            : keep(options, key, timings, std::chrono::steady_clock::now() - begin);
  }
  return result;
}

}  // namespace millrace
