#include "client/cli/text/cost_text.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <vector>

#include "client/cli/text/progress.h"
#include "proto/base/printable.h"

namespace millrace::cli {
namespace {

constexpr std::size_t kJobsShown = 20;

template <class... Values>
std::string cost_line(const char* format, Values... values) {
  std::array<char, 256> text{};
  std::snprintf(text.data(), text.size(), format, values...);
  return text.data();
}

}  // namespace

std::string jobs_text(const Statistics& statistics) {
  if (!statistics.own || statistics.jobs.empty()) return "";
  std::vector<JobStatistics> jobs = statistics.jobs;
  std::ranges::stable_sort(jobs, std::ranges::greater(), [](const JobStatistics& job) { return job.cost.cpu(); });
  std::string text =
      cost_line("\n%-22s %10s %11s %11s %10s %11s\n", "JOB", "UID", "IMAGES", "CPU", "FROM FILES", "WAITED");
  for (std::size_t i = 0; i < std::min(jobs.size(), kJobsShown); ++i) {
    const JobStatistics& job = jobs[i];
    text += cost_line("%-22.22s %10u %11s %9.1f s %10s %9.1f s\n", printable(job.name).c_str(), job.uid,
                      grouped(job.cost.images).c_str(), job.cost.cpu().count(), to_text(job.cost.from_files).c_str(),
                      job.cost.waited.count());
  }
  if (jobs.size() > kJobsShown) text += cost_line("(%zu jobs more; --json has all)\n", jobs.size() - kJobsShown);
  return text + cost_line("the daemon for itself: %.1f s of CPU, of %.1f s in all\n", statistics.own->cpu().count(),
                          statistics.cpu.count());
}

std::string cost_text(const Cost& cost) {
  std::string text = cost_line("%.1f s of CPU (lanes %.1f, reading %.1f, control %.1f", cost.cpu().count(),
                               cost.lane_cpu.count(), cost.fetch_cpu.count(), cost.control_cpu.count());
  if (cost.process_cpu.count() > 0) text += cost_line(", processes %.1f", cost.process_cpu.count());
  text += "), " + to_text(cost.from_files) + " read from files";
  if (cost.from_kept.count > 0) text += ", " + to_text(cost.from_kept) + " from what was kept";
  return text;
}

void add_cost(std::string_view key, const Cost& cost, Json& json) {
  json.key(key).begin_object().member("lane_cpu_seconds", cost.lane_cpu.count());
  json.member("fetch_cpu_seconds", cost.fetch_cpu.count()).member("control_cpu_seconds", cost.control_cpu.count());
  json.member("process_cpu_seconds", cost.process_cpu.count()).member("file_bytes", cost.from_files.count);
  json.member("kept_bytes", cost.from_kept.count).member("images", cost.images);
  json.member("tensor_bytes", cost.tensors.count).member("memory_byte_seconds", cost.memory_byte_seconds);
  json.member("saved_lane_seconds", cost.saved_lanes.count()).member("waited_seconds", cost.waited.count());
  json.end_object();
}

void add_costs(const Statistics& statistics, Json& json) {
  if (!statistics.own) return;
  json.key("jobs").begin_array();
  for (const JobStatistics& job : statistics.jobs) {
    json.begin_object().member("name", job.name).member("uid", std::uint64_t{job.uid});
    json.member("sessions", job.sessions).member("open", std::uint64_t{job.open});
    add_cost("cost", job.cost, json);
    json.end_object();
  }
  json.end_array().key("users").begin_array();
  for (const UserStatistics& user : statistics.users) {
    json.begin_object().member("uid", std::uint64_t{user.uid});
    add_cost("cost", user.cost, json);
    json.end_object();
  }
  json.end_array();
  add_cost("own", *statistics.own, json);
  json.member("cpu_seconds", statistics.cpu.count());
}

}  // namespace millrace::cli
