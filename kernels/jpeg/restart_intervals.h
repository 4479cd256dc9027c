// The restart intervals of a scan, one after the other: what stands between two RSTn markers (T.81 B.2.1, E.2.4), or
// after the last one.
//
// The bytes are hostile. Only intervals that libjpeg-turbo finds without resynchronising are taken: RST0 to RST7 in
// turns, none missing, none too many, no fill bytes before them, EOI after the last interval.
#pragma once

#include <cstdint>
#include <optional>

#include "kernels/base/target.h"
#include "kernels/jpeg/header.h"

namespace millrace::kernels::jpeg {

// Whether a marker ends the image (EOI, T.81 B.2.1), so that nothing of the file counts that comes after it. `code`:
// the byte after the 0xFF; -1: there is no marker.
bool ends_image(int code);

// RST0 to RST7; and which of them stands before interval `number` (not 0), or would.
bool is_restart(int code);
int restart_before(std::int64_t number);

// Whether a scan of `mcus` MCUs has all markers that it should have up to EOI, and no others: RST0 to RST7 in turns, one
// after every `interval` of them (0: none). What stands between them is not judged. Costs a look at the scan's bytes.
// REQUIRES: mcus > 0.
bool is_well_marked(FileBytes scan_untrusted, std::int64_t mcus, std::int64_t interval, Target target);

// A walk through a scan. Thread-bound(its owner).
class RestartIntervals {
 public:
  // `count`: how many there must be, at least one.
  RestartIntervals(FileBytes scan_untrusted, std::int64_t count, Target target)
      : left_(scan_untrusted), count_(count), target_(target) {}

  // Goes on to an interval, which is not behind us, by the markers alone: what data stands between them does not matter
  // to the intervals after it. `count`: after all of them, where EOI stands. False: odd. REQUIRES: number <= count.
  bool skip_to(std::int64_t number);

  // The interval at hand without its stuffing, as unstuff() gives it, and on to the next. Its size; nullopt: odd.
  std::optional<std::size_t> take(std::uint8_t* out);

 private:
  bool pass(std::size_t at, int code);

  FileBytes left_;
  std::int64_t number_ = 0, count_;
  Target target_;
};

}  // namespace millrace::kernels::jpeg
