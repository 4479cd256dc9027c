// What a calibration found out, in the state directory: a text file for each processor model and version.
//
//     millrace calibration 2
//     version 0.5.0
//     processor Intel(R) Xeon(R) Processor, family 6, model 207, stepping 2
//     first avx512 2 1530.25
//     first avx512 1 1711.5
//     indexed avx512 2 lanes 851
//     indexed avx512 2 turns 930.75
//
// A variant a line: what was measured, target, streams, how indexed pieces are decoded, microseconds; the fastest of
// each kind first. Whatever is not exactly so, of another processor, of another version, or names a target that this
// processor lacks, is as good as no file. Thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "daemon/backend/cpu/cpu_variant.h"
#include "proto/base/result.h"

namespace millrace {

// The processor's name and numbers, as the kernel says them.
std::string processor_model();

struct CalibrationKey {
  std::string processor;
  std::string version;
};

std::string timings_text(const Timings& timings, const CalibrationKey& key);
std::optional<Timings> read_timings(std::string_view text_untrusted, const CalibrationKey& key);

std::string calibration_path(const std::string& state_dir, const CalibrationKey& key);
std::optional<Timings> remembered_timings(const std::string& state_dir, const CalibrationKey& key);
// Replaces the file as a whole, or leaves it as it was.
Result<void> remember_timings(const std::string& state_dir, const CalibrationKey& key, const Timings& timings);

}  // namespace millrace
