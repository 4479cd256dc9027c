#include "daemon/serve/sessions/cost_messages.h"

#include <chrono>
#include <string>

#include "daemon/observe/cpu_time.h"

namespace millrace {
namespace {

double in_seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

void write(const Cost& cost, v1::Cost& message) {
  message.set_lane_cpu_seconds(in_seconds(cost.lane_cpu));
  message.set_fetch_cpu_seconds(in_seconds(cost.fetch_cpu));
  message.set_control_cpu_seconds(in_seconds(cost.control_cpu));
  message.set_process_cpu_seconds(in_seconds(cost.process_cpu));
  message.set_file_bytes(cost.from_files.count);
  message.set_kept_bytes(cost.from_kept.count);
  message.set_images(cost.images);
  message.set_tensor_bytes(cost.tensors.count);
  message.set_memory_byte_seconds(cost.memory_seconds);
  message.set_saved_lane_seconds(in_seconds(cost.saved_lanes));
  message.set_waited_seconds(in_seconds(cost.waited));
}

void write(const StageTimes& times, google::protobuf::RepeatedPtrField<v1::StageTime>& messages) {
  for (std::size_t i = 0; i < kStages; ++i) {
    const std::chrono::nanoseconds time = times.of(static_cast<Stage>(i));
    if (time.count() == 0) continue;
    v1::StageTime& message = *messages.Add();
    message.set_stage(std::string(kStageNames[i]));
    message.set_seconds(in_seconds(time));
  }
}

void describe(JobCosts& jobs, v1::GetStatisticsReply& statistics) {
  const auto now = CostAccount::Clock::now();
  Cost of_user;
  v1::UserStatistics* current = nullptr;
  jobs.for_each([&](std::uint32_t user, std::string_view name, const JobAccount& job) {
    const Cost cost = job.costs.at(now);
    v1::JobStatistics& message = *statistics.add_jobs();
    message.set_name(std::string(name));
    message.set_uid(user);
    message.set_sessions(job.sessions);
    message.set_open(job.open);
    write(cost, *message.mutable_cost());
    if (current == nullptr || current->uid() != user) {
      current = statistics.add_users();
      current->set_uid(user);
      of_user = {};
    }
    of_user += cost;
    write(of_user, *current->mutable_cost());
  });
  const std::chrono::nanoseconds cpu = cpu_time_with_children();
  statistics.set_cpu_seconds(in_seconds(cpu));
  const Cost own{.control_cpu = jobs.own_of(cpu)};
  write(own, *statistics.mutable_own());
}

}  // namespace millrace
