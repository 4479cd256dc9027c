// The figures that this server makes of what the daemon says of sessions, jobs and itself. What is in the daemon's own
// table (daemon/observe/counters.h) comes beside these as it is. Names are a promise: daemon/doc/metrics.md.
#pragma once

#include <span>

#include "client/cli/web/exposition.h"

namespace millrace::cli {

// id, name, kind, unit, labels, help.
// clang-format off
#define MILLRACE_COST_FAMILIES(row, id, name, labels, whose)                                                                           \
  row(id##_cpu, name "_cpu_seconds_total", kCounter, "seconds", labels ",part", "Processor time " whose ", of lanes, of threads that list and read (fetch), of the control thread, and of processes for decoders and devices") \
  row(id##_file_bytes, name "_file_bytes_total", kCounter, "bytes", labels, "Bytes read from files " whose)                            \
  row(id##_kept_bytes, name "_kept_bytes_total", kCounter, "bytes", labels, "Bytes read from what is kept, in place of files, " whose) \
  row(id##_images, name "_images_total", kCounter, "", labels, "Images made " whose)                                                   \
  row(id##_tensor_bytes, name "_tensor_bytes_total", kCounter, "bytes", labels, "Tensor bytes handed over " whose)                     \
  row(id##_memory, name "_memory_byte_seconds_total", kCounter, "byte_seconds", labels, "Memory for tensors times the time that it was held " whose) \
  row(id##_saved, name "_saved_lane_seconds_total", kCounter, "seconds", labels, "Lane time that the cache has saved " whose)          \
  row(id##_waited, name "_waited_seconds_total", kCounter, "seconds", labels, "Time that programs waited for batches, as their clients say, " whose)

#define MILLRACE_WEB_FAMILIES(row)                                                                                                \
  row(up, "millrace_up", kGauge, "", "", "1: the daemon has answered; 0: it has not, and all that follows of it is left out")     \
  row(build, "millrace_build_info", kInfo, "", "version,web_version", "Versions of the daemon and of this server")                \
  row(uptime, "millrace_uptime_seconds", kGauge, "seconds", "", "Since the daemon listens")                                       \
  row(cpu, "millrace_cpu_seconds_total", kCounter, "seconds", "", "Processor time of the daemon and its processes, as the kernel says") \
  row(session_info, "millrace_session_info", kInfo, "", "session,name,job_name,uid,pid", "Whose an open session is")                   \
  row(session_age, "millrace_session_age_seconds", kGauge, "seconds", "session", "Since the session was opened")                  \
  row(session_slots, "millrace_session_slots", kGauge, "", "session", "Slots of the session")                                     \
  row(session_slots_free, "millrace_session_slots_free", kGauge, "", "session", "Of these, those that hold no batch")             \
  row(session_slots_not_ready, "millrace_session_slots_not_ready", kGauge, "", "session", "Of its slots, those whose memory is being filled") \
  row(session_slots_withdrawn, "millrace_session_slots_withdrawn", kGauge, "", "session", "Slots for which there was no room, not among its slots") \
  row(session_segment, "millrace_session_segment_bytes", kGauge, "bytes", "session", "Shared memory of the session")              \
  row(session_batches, "millrace_session_batches_total", kCounter, "", "session", "Batches handed over to the session")           \
  row(session_samples, "millrace_session_samples_total", kCounter, "", "session", "Images made for the session")                  \
  row(session_bad_samples, "millrace_session_bad_samples_total", kCounter, "", "session", "Images of the session that could not be read or decoded") \
  row(session_lanes, "millrace_session_lane_seconds_total", kCounter, "seconds", "session", "Lane time that images of the session took") \
  row(session_waits_told, "millrace_session_waits_told_total", kCounter, "", "session", "Batches for which the client said how long its program waited") \
  row(session_state, "millrace_session_state_seconds_total", kCounter, "seconds", "session,state", "Time of the session in each state: session_time.md") \
  row(session_waited, "millrace_session_waited_seconds_total", kCounter, "seconds", "session,state", "Time that the program waited for batches, by the state that the session was in") \
  row(session_making, "millrace_session_making_seconds_total", kCounter, "seconds", "session,stage", "Lane time by stage of making images") \
  row(job_sessions, "millrace_job_sessions", kGauge, "", "job_name,uid", "Open sessions of the job")                                   \
  row(job_opened, "millrace_job_sessions_opened_total", kCounter, "", "job_name,uid", "Sessions that the job has opened")              \
  MILLRACE_COST_FAMILIES(row, job, "millrace_job", "job_name,uid", "for the job")                                                      \
  MILLRACE_COST_FAMILIES(row, user, "millrace_user", "uid", "for the user")                                                       \
  row(own_cpu, "millrace_own_cpu_seconds_total", kCounter, "seconds", "part", "Processor time of the daemon for no session")      \
  row(own_file_bytes, "millrace_own_file_bytes_total", kCounter, "bytes", "", "Bytes read from files for no session")             \
  row(process_cpu, "process_cpu_seconds_total", kCounter, "seconds", "", "Processor time of the daemon, without its processes")   \
  row(process_resident, "process_resident_memory_bytes", kGauge, "bytes", "", "What the daemon has in memory")                    \
  row(process_virtual, "process_virtual_memory_bytes", kGauge, "bytes", "", "Addresses that the daemon has mapped")               \
  row(process_start, "process_start_time_seconds", kGauge, "seconds", "", "When the daemon was started, since 1970")              \
  row(process_threads, "process_threads", kGauge, "", "", "The daemon's threads")                                                 \
  row(web_connections, "millrace_web_connections", kGauge, "", "", "Connections to this server now")                              \
  row(web_requests, "millrace_web_requests_total", kCounter, "", "", "Requests that this server has read")                        \
  row(web_evicted, "millrace_web_evicted_total", kCounter, "", "", "Connections, idle or slow, that this server has closed for others")     \
  row(web_asks, "millrace_web_asks_total", kCounter, "", "", "Calls of this server to the daemon")
// clang-format on

enum class WebFamily : std::uint32_t {
#define MILLRACE_ID(id, name, kind, unit, labels, help) id,
  MILLRACE_WEB_FAMILIES(MILLRACE_ID)
#undef MILLRACE_ID
      kCount
};

struct WebFamilyRow {
  Family family;
  std::string_view labels;  // "session,state"; empty: none
};
std::span<const WebFamilyRow> web_family_table();

inline const Family& family_of(WebFamily id) {
  return web_family_table()[static_cast<std::size_t>(id)].family;
}

}  // namespace millrace::cli
