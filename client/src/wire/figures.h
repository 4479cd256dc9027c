// The daemon's figures and findings, out of its messages. Pure functions, thread-safe.
#pragma once

#include <vector>

#include "millrace/findings.h"
#include "millrace/statistics.h"
#include "millrace/v1/statistics.pb.h"

namespace millrace {
inline namespace client {

Statistics to_statistics(const v1::GetStatisticsReply& reply);
std::vector<SessionFindings> to_findings(const v1::ExplainReply& reply);

}  // namespace client
}  // namespace millrace
