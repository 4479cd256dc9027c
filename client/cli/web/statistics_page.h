// /metrics: what the daemon says, as families and samples. Pure, thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "client/cli/web/exposition.h"
#include "client/cli/web/label_places.h"
#include "millrace/v1/statistics.pb.h"

namespace millrace::cli {

// Of this server itself.
struct WebFigures {
  std::uint64_t connections = 0;
  std::uint64_t requests = 0;
  std::uint64_t evicted = 0;
  std::uint64_t asks = 0;
};

// `statistics_untrusted`: nullptr without a daemon; else what `places` has looked at last. Sessions, jobs and users without
// a place are one: "other".
std::string statistics_page(const v1::GetStatisticsReply* statistics_untrusted, const LabelPlaces& places,
                            const WebFigures& web, Exposition::Form form);

}  // namespace millrace::cli
