// What work cost, for people and programs. Pure functions, thread-safe.
#pragma once

#include <string>

#include "client/cli/text/json.h"
#include "millrace/client.h"

namespace millrace::cli {

// A line a job, the dearest first, and what the daemon took for itself; empty where it is older and does not say.
std::string jobs_text(const Statistics& statistics);

// "12.3 s of CPU (lanes 11.2, reading 0.8, control 0.2, processes 0.1), 45.0 MiB read from files".
std::string cost_text(const Cost& cost);

// {"lane_cpu_seconds": 11.2, ...}: the fields of the protocol's Cost.
void add_cost(std::string_view key, const Cost& cost, Json& json);
// "jobs", "users", "own" and "cpu_seconds"; nothing of an older daemon's.
void add_costs(const Statistics& statistics, Json& json);

}  // namespace millrace::cli
