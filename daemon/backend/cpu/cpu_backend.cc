#include "daemon/backend/cpu/cpu_backend.h"

#include <pthread.h>
#include <sched.h>

#include <fstream>
#include <string>
#include <type_traits>
#include <utility>

#include "daemon/backend/cpu/repair.h"
#include "kernels/cpu/target.h"

namespace millrace {
namespace {

std::uint32_t usable_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof cores, &cores) != 0) return std::max(1U, std::thread::hardware_concurrency());
  return static_cast<std::uint32_t>(std::max(1, CPU_COUNT(&cores)));
}

Result<std::uint32_t> lanes_of(const BackendOptions& options) {
  std::uint32_t lanes = options.lanes;
  if (lanes == 0) lanes = options.cores.empty() ? usable_cores() : static_cast<std::uint32_t>(options.cores.size());
  if (lanes <= CpuBackend::kMaxLanes) return lanes;
  return Error{Code::kInvalid, std::to_string(lanes) + " CPU lanes: at most " + std::to_string(CpuBackend::kMaxLanes) +
                                   " are possible"};
}

Result<void> pin(std::thread& thread, int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  const bool possible = core >= 0 && core < CPU_SETSIZE;
  if (possible) CPU_SET(static_cast<unsigned>(core), &cores);
  if (possible && pthread_setaffinity_np(thread.native_handle(), sizeof cores, &cores) == 0) return {};
  return Error{Code::kInvalid,
               "a CPU lane cannot be pinned to core " + std::to_string(core) + ": this process may not use it"};
}

// The processor's name as the kernel says it.
std::string processor_name() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

Error cancelled_error() {
  return {Code::kCancelled, "stopped before it began"};
}

}  // namespace

Result<std::unique_ptr<Backend>> CpuBackend::create(const BackendOptions& options) {
  MILLRACE_TRY(const std::uint32_t lanes, lanes_of(options));
  std::unique_ptr<CpuBackend> backend(new CpuBackend(lanes, options.limits));
  MILLRACE_TRY_VOID(backend->start(options.cores));
  return std::unique_ptr<Backend>(std::move(backend));
}

CpuBackend::CpuBackend(std::uint32_t lanes, const SampleLimits& limits)
    : lanes_(lanes), limits_(limits), queue_(2 * lanes) {}

Result<void> CpuBackend::start(const std::vector<int>& cores) {
  for (std::uint32_t i = 0; i < lanes_; ++i) {
    std::thread& lane = threads_.emplace_back([this] { run_lane(); });
    pthread_setname_np(lane.native_handle(), ("mr-lane-" + std::to_string(i)).c_str());
    if (!cores.empty()) MILLRACE_TRY_VOID(pin(lane, cores[i % cores.size()]));
  }
  return {};
}

BackendInfo CpuBackend::info() const {
  return {.name = "cpu",
          .device = processor_name(),
          .detail = std::string(kernels::name_of(kernels::best_target())),
          .lanes = lanes_,
          .formats = {ImageFormat::kJpeg, ImageFormat::kPng, ImageFormat::kWebp}};
}

void CpuBackend::shutdown() {
  std::call_once(shut_down_, [this] {
    queue_.close();
    for (std::thread& thread : threads_) thread.join();
  });
}

void CpuBackend::run_lane() {
  ImageWorkspace workspace;
  while (std::optional<QueuedJob> next = queue_.pop()) {
    if (QueuedDecode* const decode = std::get_if<QueuedDecode>(&*next))
      run(std::move(*decode), workspace);
    else
      run_repair(std::get<RepairJob>(*next));
  }
}

void CpuBackend::run(QueuedDecode queued, ImageWorkspace& workspace) {
  DecodeJob& job = queued.job;
  std::vector<SampleOutcome> outcomes;
  outcomes.reserve(job.tasks.size());
  for (const SampleTask& task : job.tasks) {
    const auto waited = std::chrono::steady_clock::now() - queued.since;
    outcomes.push_back(make(job, task, workspace));
    outcomes.back().queued = std::chrono::duration_cast<std::chrono::microseconds>(waited);
  }
  queue_.finished();  // before done(): who is told so may submit the next at once
  job.done(std::move(job.tasks), std::move(outcomes));
}

SampleOutcome CpuBackend::make(const DecodeJob& job, const SampleTask& task, ImageWorkspace& workspace) const {
  if (queue_.closed() || (job.stop && job.stop->stopped())) return {.index = task.index, .error = cancelled_error()};
  return make_image(task, *job.recipe, limits_, workspace, job.fidelity);
}

}  // namespace millrace
