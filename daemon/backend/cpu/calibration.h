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
};

// What this processor can do and the wish allows, the one that is likely the fastest first. Never empty. kInvalid: the
// processor lacks the target.
Result<std::vector<CpuVariant>> variants(const CpuWish& wish);

// Times the variants in turns, the least of several rounds each, for about `budget` at the most but one round at least.
// The fastest first; what is within 2 % of it and came before it in `variants` goes before it. Empty: no memory.
std::vector<Timing> time_variants(std::span<const CpuVariant> variants, std::chrono::milliseconds budget);

struct CalibrationOptions {
  CpuWish wish;
  std::string state_dir;  // empty, or a folder that cannot be written to: nothing is remembered
  std::string version;    // the daemon's: another one's kernels may be faster or slower
};

struct Calibration {
  CpuVariant variant;
  std::vector<Timing> timings;  // the fastest first; empty: there was nothing to choose from
  std::string source;           // for people: "measured at start", "the settings leave no choice", ...
};

// Costs nothing where something was remembered, else some 50 ms. kInvalid: as variants().
Result<Calibration> calibrate(const CalibrationOptions& options);

}  // namespace millrace
