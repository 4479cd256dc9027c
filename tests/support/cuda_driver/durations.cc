#include "tests/support/cuda_driver/durations.h"

#include <sys/prctl.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/support/cuda_driver/settings.h"

namespace millrace::sim {
namespace {

struct Duration {
  std::string name;
  double us = 0, bytes_a_us = 0;  // the second 0: they cost nothing
};

Duration read_duration(const std::string& text) {
  char name[64];
  Duration duration;
  const int read = std::sscanf(text.c_str(), "%63[^=]=%lf/%lf", name, &duration.us, &duration.bytes_a_us);
  if (read < 2 || duration.us < 0 || duration.bytes_a_us < 0) {
    std::fprintf(stderr, "simulated CUDA: no duration of SIM_CUDA_DURATIONS: %s\n", text.c_str());
    std::abort();
  }
  duration.name = name;
  return duration;
}

std::vector<Duration>* read_durations(const std::string& all) {
  auto* const durations = new std::vector<Duration>;
  for (std::size_t begin = 0; begin < all.size();) {
    const std::size_t end = std::min(all.find(';', begin), all.size());
    if (end > begin) durations->push_back(read_duration(all.substr(begin, end - begin)));
    begin = end + 1;
  }
  return durations;
}

}  // namespace

std::chrono::nanoseconds duration_of(std::string_view name, std::size_t bytes) {
  static const auto* const durations = read_durations(settings().durations);
  for (const Duration& duration : *durations) {
    if (duration.name != name) continue;
    const double of_bytes = duration.bytes_a_us == 0 ? 0 : static_cast<double>(bytes) / duration.bytes_a_us;
    return std::chrono::nanoseconds(static_cast<std::int64_t>(1000 * (duration.us + of_bytes)));
  }
  return {};
}

void wake_in_time() {
  if (!settings().durations.empty()) static_cast<void>(prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0));
}

}  // namespace millrace::sim
