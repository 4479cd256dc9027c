// What work cost, as messages. Functions. Thread-bound(control).
#pragma once

#include "daemon/observe/cost.h"
#include "daemon/observe/job_costs.h"
#include "millrace/v1/statistics.pb.h"

namespace millrace {

void write(const Cost& cost, v1::Cost& message);
// Those that took any time.
void write(const StageTimes& times, google::protobuf::RepeatedPtrField<v1::StageTime>& messages);
// Jobs, users, the daemon's own and the kernel's figure.
void describe(JobCosts& jobs, v1::GetStatisticsReply& statistics);

}  // namespace millrace
