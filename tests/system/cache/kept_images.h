// Images of which the daemon keeps something, and the same images without: for tests of what it keeps.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "millrace/client.h"
#include "tests/system/support/daemon.h"
#include "tests/system/support/need.h"

namespace millrace {

inline constexpr int kKeptImages = 24;  // in the folder, and in a batch
using TensorBytes = std::vector<std::byte>;

// Until every file is older than what the daemon takes for stable.
inline void wait_until_stable() {
  std::this_thread::sleep_for(std::chrono::milliseconds(2'100));
}

inline Session session_of(const Daemon& daemon, const Recipe& recipe, CacheUse cache = CacheUse::kTensors,
                          bool at_once = false) {
  return need(daemon.connect().open_session(
      {.batch = kKeptImages, .recipe = recipe, .cache = cache, .cache_at_once = at_once}));
}

inline TensorBytes bytes_of(const Batch& batch) {
  return {batch.tensor.data().begin(), batch.tensor.data().end()};
}

// The same boxes each time, for they are drawn from seed, epoch and position.
inline BatchRequest batch_to_touch() {
  return {.seed = 5, .on_error = OnError::kZero};
}

inline TensorBytes touch(Session& session, const std::vector<std::string>& paths) {
  BatchRequest request = batch_to_touch();
  for (const std::string& path : paths) request.samples.push_back({.source = Path{path}});
  return bytes_of(need(session.wait(need(session.submit(std::move(request))))));
}

// As nothing that is kept can say it.
inline TensorBytes truth(const Daemon& daemon, const std::vector<std::string>& paths, const Recipe& recipe) {
  Session session = session_of(daemon, recipe, CacheUse::kOff);
  return touch(session, paths);
}

inline double labelled(const Daemon& daemon, const std::string& name, const std::string& label) {
  for (const Metric& metric : need(daemon.connect().statistics()).metrics) {
    if (metric.name != name) continue;
    const auto found = std::ranges::find(metric.values, label, &LabelledValue::label);
    if (found != metric.values.end()) return found->value;
  }
  throw std::runtime_error("no figure " + name + " of " + label);
}

}  // namespace millrace
