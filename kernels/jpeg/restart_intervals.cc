#include "kernels/jpeg/restart_intervals.h"

#include "kernels/jpeg/unstuff.h"

namespace millrace::kernels::jpeg {
namespace {

constexpr int kRst0 = 0xD0, kEoi = 0xD9;

}  // namespace

bool ends_image(int code) {
  return code == kEoi;
}

bool is_restart(int code) {
  return code >= kRst0 && code < kRst0 + 8;
}

int restart_before(std::int64_t number) {
  return kRst0 + static_cast<int>((number - 1) % 8);
}

bool is_well_marked(FileBytes scan_untrusted, std::int64_t mcus, std::int64_t interval, Target target) {
  const std::int64_t intervals = interval == 0 ? 1 : (mcus + interval - 1) / interval;
  return RestartIntervals(scan_untrusted, intervals, target).skip_to(intervals);
}

bool RestartIntervals::skip_to(std::int64_t number) {
  while (number_ < number) {
    const MarkerPlace marker = find_marker(left_, target_);
    if (!pass(marker.at, marker.code)) return false;
  }
  return true;
}

std::optional<std::size_t> RestartIntervals::take(std::uint8_t* out) {
  const Unstuffed unstuffed = unstuff(left_, out, target_);
  if (!pass(unstuffed.consumed, unstuffed.marker)) return std::nullopt;
  return unstuffed.size;
}

// Behind the marker of the interval at hand. The one that ends the image stays.
bool RestartIntervals::pass(std::size_t at, int code) {
  const bool last = ++number_ == count_;
  if (last ? !ends_image(code) : code != restart_before(number_)) return false;
  left_ = left_.subspan(last ? at : at + 2);
  return true;
}

}  // namespace millrace::kernels::jpeg
