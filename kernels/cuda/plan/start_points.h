// Where decoding of a scan may begin, for the parts of it that a crop needs: from a seek index, or after restart
// markers. Host only. Thread-safe: plain functions.
//
// Costs a look at the scan's bytes up to the window's end, 32 at a time, or one walk over an index's places.
#pragma once

#include <optional>
#include <vector>

#include "kernels/cuda/batch.h"
#include "kernels/jpeg/mcu_window.h"
#include "kernels/jpeg/seek_index.h"

namespace millrace::kernels::cuda {

// The segments between the index's places that meet `window`, appended in rising order. False, and nothing appended:
// the index ends above the window's end.
bool append_indexed(const jpeg::SeekIndex& index, const jpeg::McuWindow& window, std::vector<Segment>& segments);

// The intervals of `interval` MCUs that meet `window`. False: a marker is missing or not the one expected up to there,
// which libjpeg-turbo would warn of; what was appended means nothing. Markers behind the window are
// jpeg::is_well_marked()'s to judge. REQUIRES: interval > 0.
bool append_intervals(jpeg::FileBytes scan_untrusted, const jpeg::SeekGrid& grid, std::int64_t interval,
                      const jpeg::McuWindow& window, std::vector<Segment>& segments);

}  // namespace millrace::kernels::cuda
