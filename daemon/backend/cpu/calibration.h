// Which way to decode is fastest on this processor: measured at start, on pictures made up for it, and remembered for
// each processor model. Thread-safe.
//
//   MILLRACE_TRY(const Calibration calibration, calibrate({.state_dir = "/var/lib/millrace", .version = "0.5.0"}));
//   ImageWorkspace workspace(JpegPath::kFastest, calibration.variant);
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "daemon/backend/cpu/cpu_variant.h"
#include "proto/base/result.h"

namespace millrace {

// What the administrator decided; nullopt: measure.
struct CpuWish {
  std::optional<kernels::Target> target;
  std::optional<kernels::jpeg::Streams> streams;
  std::optional<kernels::jpeg::SegmentPath> segments;  // lanes need kAvx512, and so decide the target
};

// What this processor can do at first touches and the wish allows, the one that is likely the fastest first; `segments`
// is left open. Never empty. kInvalid: the processor lacks the target, or the target the lanes.
Result<std::vector<CpuVariant>> variants(const CpuWish& wish);

// `chosen` with each way to decode by a seek index that it has and the wish allows, the usual one first. Never empty.
std::vector<CpuVariant> indexed_variants(const CpuVariant& chosen, const CpuWish& wish);

// What is measured: a picture not seen before, or one that a seek index is known of.
enum class Touch : std::uint8_t { kFirst, kIndexed };

// Times the variants in turns for about `budget` at the most but one round at least; ranked().
// Empty: no memory.
std::vector<Timing> time_variants(std::span<const CpuVariant> variants, Touch touch, std::chrono::milliseconds budget);

// The fastest first, by the median of the rounds' ratios to the first of `variants`, whose own median gives the unit.
// But what came before it in `variants` and is within 5 % of it goes before it, for so much is noise. REQUIRES: as many
// rounds, at least one, for each of `variants`, of more than 0.
std::vector<Timing> ranked(std::span<const CpuVariant> variants, std::span<const std::vector<double>> microseconds);

struct CalibrationOptions {
  CpuWish wish;
  std::string state_dir;  // empty, or a folder that cannot be written to: nothing is remembered
  std::string version;    // the daemon's: another one's kernels may be faster or slower
};

struct Calibration {
  CpuVariant variant;
  Timings timings;
  std::string source;  // for people: "measured at start in 72 ms", "there is nothing to choose from", ...
};

// Costs nothing where something was remembered, else what `source` says. kInvalid: as variants().
Result<Calibration> calibrate(const CalibrationOptions& options);

}  // namespace millrace
