// The daemon's figures as messages. A pure function, thread-safe.
#pragma once

#include "daemon/observe/counters.h"
#include "millrace/v1/statistics.pb.h"

namespace millrace {

// Every row of the tables, with its values by label or its histogram's buckets.
void describe(const Counters& counters, v1::GetStatisticsReply& statistics);

}  // namespace millrace
