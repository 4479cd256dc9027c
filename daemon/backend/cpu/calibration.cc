#include "daemon/backend/cpu/calibration.h"

#include <time.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "daemon/backend/cpu/calibration_file.h"
#include "daemon/backend/cpu/calibration_picture.h"
#include "daemon/backend/cpu/image_maker.h"

namespace millrace {
namespace {

using kernels::Target;
using kernels::jpeg::Streams;

constexpr int kMostRounds = 5;
constexpr std::chrono::milliseconds kBudget{100};
constexpr double kAsGood = 1.02;  // less than this apart is noise
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
    return outcome.error ? std::numeric_limits<double>::infinity() : thread_microseconds() - begin;
  }

 private:
  const Recipe recipe_ = training_recipe();
  std::vector<std::byte> out_;
  SampleTask task_;
};

// One variant's best so far.
struct Racer {
  explicit Racer(const CpuVariant& variant)
      : timing{variant, std::numeric_limits<double>::infinity()},
        workspace(std::make_unique<ImageWorkspace>(JpegPath::kFastest, variant)) {}

  void run(std::span<const std::unique_ptr<Trial>> trials) {
    double sum = 0;
    for (const auto& trial : trials) sum += trial->microseconds(*workspace);
    timing.microseconds = std::min(timing.microseconds, sum);
  }

  Timing timing;
  std::unique_ptr<ImageWorkspace> workspace;
};

// The same variants, in whatever order.
bool times_all(std::span<const Timing> timings, std::span<const CpuVariant> variants) {
  if (timings.size() != variants.size()) return false;
  return std::all_of(variants.begin(), variants.end(), [&](const CpuVariant& variant) {
    return std::any_of(timings.begin(), timings.end(), [&](const Timing& timing) { return timing.variant == variant; });
  });
}

}  // namespace

Result<std::vector<CpuVariant>> variants(const CpuWish& wish) {
  std::vector<Target> targets = kernels::available_targets();
  if (wish.target && !kernels::is_available(*wish.target)) {
    return Error{Code::kInvalid, "cpu.target: this processor lacks " + std::string(kernels::name_of(*wish.target)) +
                                     "; set \"auto\", or what it has"};
  }
  std::vector<CpuVariant> found;
  for (auto target = targets.rbegin(); target != targets.rend(); ++target) {
    if (wish.target && *target != *wish.target) continue;
    for (const Streams streams : {Streams::kTwo, Streams::kOne}) {
      const bool one_is_all = *target == Target::kScalar && streams == Streams::kTwo && !wish.streams;
      if (!one_is_all && (!wish.streams || streams == *wish.streams)) found.push_back({*target, streams});
    }
  }
  return found;
}

std::vector<Timing> time_variants(std::span<const CpuVariant> variants, std::chrono::milliseconds budget) {
  const auto end = std::chrono::steady_clock::now() + budget;
  std::vector<std::unique_ptr<Trial>> trials;
  for (const CalibrationPicture& picture : calibration_pictures()) trials.push_back(std::make_unique<Trial>(picture));
  if (trials.empty()) return {};
  std::vector<Racer> racers;
  for (const CpuVariant& variant : variants) racers.emplace_back(variant);
  for (Racer& racer : racers) racer.run(trials);  // buffers and tables grow: the next round is faster
  for (int round = 0; round < kMostRounds && std::chrono::steady_clock::now() < end; ++round) {
    for (Racer& racer : racers) racer.run(trials);
  }
  std::vector<Timing> timings;
  for (const Racer& racer : racers) timings.push_back(racer.timing);
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
  if (choices.size() == 1) return Calibration{choices.front(), {}, "there is nothing to choose from"};
  const CalibrationKey key{processor_model(), options.version};
  if (!options.state_dir.empty()) {
    std::optional<std::vector<Timing>> timings = remembered_timings(options.state_dir, key);
    if (timings && times_all(*timings, choices))
      return Calibration{timings->front().variant, *std::move(timings),
                         "measured before, see " + calibration_path(options.state_dir, key)};
  }
  std::vector<Timing> timings = time_variants(choices, kBudget);
  if (timings.empty()) return Calibration{choices.front(), {}, "not measured: there was no memory for it"};
  Calibration measured{timings.front().variant, std::move(timings), "measured at start"};
  const bool whole = !options.wish.target && !options.wish.streams;  // a part of it would not serve the next start
  if (!whole || options.state_dir.empty()) return measured;
  const Result<void> kept = remember_timings(options.state_dir, key, measured.timings);
  measured.source +=
      kept ? ", kept in " + calibration_path(options.state_dir, key) : ", not kept: " + kept.error().message;
  return measured;
}

}  // namespace millrace
