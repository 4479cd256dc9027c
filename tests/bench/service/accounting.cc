#include "tests/bench/service/accounting.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "daemon/backend/backend.h"
#include "daemon/observe/job_costs.h"
#include "daemon/pipeline/turns/control_time.h"

namespace millrace::bench {
namespace {

constexpr std::uint32_t kBatches = 20'000;

// One batch after another: its scopes with the accounts of `costs`, or without where it is null, and what portions, jobs
// and the batch add to it.
std::chrono::nanoseconds work(const std::shared_ptr<SessionCosts>& costs, std::uint32_t batch) {
  constexpr std::uint32_t kScopesAPortion = 10;  // read: given, back, fed; made: the same
  const std::uint32_t portions = std::clamp(batch, 1U, 8U);
  const UserShares shares;
  ControlTime time(shares);
  const auto begun = std::chrono::steady_clock::now();
  for (std::uint32_t i = 0; i < kBatches; ++i) {
    for (std::uint32_t portion = 0; portion < portions; ++portion) {
      for (std::uint32_t scope = 0; scope < kScopesAPortion; ++scope) {
        const auto working = time.work_for(UserId{1000}, costs);
      }
      if (!costs) continue;
      costs->add({.fetch_cpu = std::chrono::nanoseconds(1000), .from_files = Bytes{1000}});
      const auto use = std::make_shared<JobUse>();
      costs->add({.lane_cpu = std::chrono::nanoseconds(1000), .images = 8});
      costs->saved(use->saved);
      costs->made(std::chrono::nanoseconds(1000), use->stages);
    }
    if (costs) costs->add({.tensors = Bytes{1000}});
  }
  return std::chrono::steady_clock::now() - begun;
}

}  // namespace

double accounting_nanoseconds(std::uint32_t batch) {
  JobCosts jobs;
  const auto costs = std::make_shared<SessionCosts>(jobs.opens(1000, "bench"));
  const std::chrono::nanoseconds without = work(nullptr, batch), with = work(costs, batch);
  return static_cast<double>((with - without).count()) / kBatches / batch;
}

}  // namespace millrace::bench
