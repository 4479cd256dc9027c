#include "daemon/process/budget_text.h"

#include <algorithm>
#include <iomanip>
#include <sstream>
#include <string_view>
#include <thread>
#include <vector>

#include "daemon/backend/backend_table.h"
#include "daemon/backend/cpu/cpu_settings.h"

namespace millrace {
namespace {

constexpr std::uint64_t kSpare = 16;  // the limit is a sixteenth more than what adds up: page tables, fragments

struct Part {
  Bytes bytes;
  std::string_view what;
};

std::uint32_t lanes_of(const Settings& settings) {
  const std::uint32_t lanes = settings.groups.of<CpuSettings>().lanes;
  return lanes != 0 ? lanes : std::max(1U, std::thread::hardware_concurrency());
}

std::vector<Part> parts_of(const Settings& settings) {
  const Readers readers = readers_of(settings);
  std::vector<Part> parts = {
      {settings.segment_budget, "memory.segments: pages of shared memory count as the daemon's"},
      {settings.decoding, "memory.decoding"},
      {settings.cache_memory, "cache.memory"},
      {settings.requests, "memory.requests"},
      {settings.encoded_in_flight * kTimesEncoded, "memory.encoded_in_flight thrice, for reading may exceed it so far"},
      {readers.file * readers.threads,
       "limits.encoded for each of lanes.fetch_threads and one more: files larger than that"},
      {kLaneTakes * lanes_of(settings), "what each lane keeps, at most 40 MiB"},
      {kDaemonKeeps, "code, threads, connections"},
  };
  for (const BackendRow& row : backend_table()) {
    const HostMemory memory = row.memory == nullptr ? HostMemory() : row.memory(settings);
    if (memory.bytes.count != 0) parts.push_back({memory.bytes, memory.what});
  }
  return parts;
}

std::string text_of(const ResourceRow& row, std::uint64_t bound) {
  if (bound == kUnbounded) return "-";
  return row.unit == Unit::kBytes ? to_text(Bytes{bound}) : std::to_string(bound);
}

std::string settings_of(const ResourceRow& row) {
  std::string text;
  for (const std::string_view setting : {row.setting, row.user_setting, row.session_setting}) {
    if (!setting.empty()) text += (text.empty() ? "" : ", ") + std::string(setting);
  }
  return text;
}

}  // namespace

std::string budget_table(const Budgets& budgets) {
  std::ostringstream table;
  const auto line = [&](const std::string& what, const std::string& all, const std::string& user,
                        const std::string& session, const std::string& settings) {
    table << "# " << std::left << std::setw(36) << what << std::right << std::setw(10) << all << std::setw(12) << user
          << std::setw(11) << session << "  " << settings << '\n';
  };
  table << "# What clients may have at once:\n";
  line("", "in all", "a user", "a session", "settings");
  bool parts = false;
  for (const ResourceRow& row : resource_table()) {
    const Bounds& bounds = budgets[row.id];
    const bool part = bounds.parts == Parts::kOfFree;
    parts = parts || part;
    const std::string of_user = text_of(row, std::min(bounds.user, part ? bounds.total / 8 * 7 : kUnbounded));
    line((row.where.empty() ? "" : std::string(row.where) + ' ') + std::string(row.noun), text_of(row, bounds.total),
         of_user + (part ? " *" : ""), text_of(row, bounds.session), settings_of(row));
  }
  table << (parts ? "# * alone; never more than seven times what is free, for several users can reach the socket\n"
                  : "# No other user can reach the socket: nothing is kept for others.\n");
  return table.str();
}

Bytes most_memory(const Settings& settings) {
  Bytes sum;
  for (const Part& part : parts_of(settings)) sum += part.bytes;
  return sum;
}

std::optional<std::string> too_much_memory(const Settings& settings) {
  const Bytes most = most_memory(settings), there = memory_of_host();
  if (most <= there) return std::nullopt;
  return "the budgets for memory add up to " + to_text(most) +
         " with what the daemon takes itself, and this host or control group has " + to_text(there) +
         ": lower memory.segments, memory.decoding, memory.requests, cache.memory, cuda.staging, fpga.staging or "
         "limits.encoded";
}

std::string memory_drop_in(const Settings& settings) {
  std::ostringstream text;
  text << "# How much memory the service may have, by its settings. Print it anew when these have changed:\n"
          "#   millraced --config /etc/millrace/millrace.toml --memory-drop-in \\\n"
          "#     > /etc/systemd/system/millraced.service.d/memory.conf && systemctl daemon-reload\n"
          "# What a process with CUDA takes of the host is assumed, never measured. The budgets refuse clients before "
          "this\n"
          "# limit is reached; it is for what nobody foresaw.\n#\n";
  for (const Part& part : parts_of(settings))
    text << "#  " << std::setw(10) << to_text(part.bytes) << "  " << part.what << '\n';
  const Bytes sum = most_memory(settings);
  text << "[Service]\n# The sum: above it the kernel takes memory back, caches of files first.\nMemoryHigh="
       << sum.count
       << "\n# A sixteenth more: above it the kernel ends the daemon.\nMemoryMax=" << sum.count + sum.count / kSpare
       << '\n';
  return text.str();
}

}  // namespace millrace
