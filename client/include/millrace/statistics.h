// What the daemon has done and holds, and the devices that it drives. Values.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "millrace/result.h"

namespace millrace {
inline namespace client {

struct LabelledValue {
  std::string label{};  // "cpu"
  double value = 0;
};

// Of a histogram: how many durations were shorter than `below`, those of the buckets before included.
struct Bucket {
  double below = 0;  // seconds; infinity in the last one
  std::uint64_t count = 0;
};

struct Metric {
  std::string name{};  // "millrace_samples_total": OpenMetrics names, base units
  std::string unit{};  // "seconds", "bytes", "" for plain counts
  std::string help{};
  bool counter = false;                 // only grows while the daemon lives; else it goes up and down
  double value = 0;                     // of a histogram: how many durations
  std::string label{};                  // what it is told by as well: "backend", "user", "code"; empty: it is not
  std::vector<LabelledValue> values{};  // by label; they add up to `value`
  std::vector<Bucket> buckets{};        // of a histogram: always the same ones, the last for infinity
  double sum = 0;                       // of a histogram: of all durations
};

// What work took, or a part of it. CPU times are the kernel's, of threads and processes.
struct Cost {
  std::chrono::duration<double> lane_cpu{};     // of CPU lanes
  std::chrono::duration<double> fetch_cpu{};    // of the threads that list and read
  std::chrono::duration<double> control_cpu{};  // of the control thread
  std::chrono::duration<double> process_cpu{};  // of decoder processes, and of those that own devices
  Bytes from_files{};                           // read
  Bytes from_kept{};                            // read from what is kept, in memory or on disk, in place of files
  std::uint64_t images = 0;                     // made
  Bytes tensors{};                              // handed over
  double memory_byte_seconds = 0;               // memory for tensors, by the time that it was held
  std::chrono::duration<double> saved_lanes{};  // lane time that first accesses of the same files would have taken more
  std::chrono::duration<double> waited{};       // of programs, as their clients say

  std::chrono::duration<double> cpu() const { return lane_cpu + fetch_cpu + control_cpu + process_cpu; }
};

// Lane time of one stage of making images.
struct StageTime {
  std::string stage{};  // "decode", "resample", "pack", or an augmentation step: "solarize"; further ones may come
  std::chrono::duration<double> time{};
};

// The sessions of one user that named one job, those that are closed included.
struct JobStatistics {
  std::string name{};
  std::uint32_t uid = 0;
  std::uint64_t sessions = 0;  // opened so far
  std::uint32_t open = 0;      // of these, now
  Cost cost{};
};

struct UserStatistics {
  std::uint32_t uid = 0;
  Cost cost{};  // of all jobs of the user
};

// Of a session: how long it was in a state, and in which its program waited. daemon/doc/session_time.md has the states.
struct StateTime {
  std::string state{};  // "read_turn"; further ones may come
  std::chrono::duration<double> time{};
  std::chrono::duration<double> waited{};  // of the program, as its client says, for batches that it has given back
};

struct SessionStatistics {
  std::uint64_t id = 0;
  std::string name{};
  std::uint32_t uid = 0;
  std::int32_t pid = 0;
  std::uint32_t slots = 0;
  std::uint32_t slots_free = 0;
  std::uint32_t slots_not_ready = 0;  // of `slots`: their memory is being filled
  std::uint32_t slots_withdrawn = 0;  // the host had no room for them; not among `slots`
  Bytes segment{};
  std::uint64_t batches = 0;  // completed
  std::uint64_t samples = 0;  // completed
  std::uint64_t bad_samples = 0;
  std::chrono::duration<double> lanes{};  // lane time that decoding and transforming its samples took
  std::chrono::duration<double> age{};    // since it was opened; 0: the daemon is older
  std::vector<StateTime> states{};        // every one; their times add up to `age`
  std::uint64_t waits_told = 0;           // batches given back for which its client said how long the program waited
  std::string job{};                      // whose costs it adds to; empty: the daemon is older
  std::optional<Cost> cost{};             // none: the daemon is older
  std::vector<StageTime> making{};        // by stage
};

struct Statistics {
  std::string daemon_version{};
  std::int32_t pid = 0;
  std::chrono::duration<double> uptime{};
  std::vector<Metric> metrics{};
  std::vector<SessionStatistics> sessions{};
  std::string settings_file{};               // the daemon's; empty: it was started without one
  std::vector<std::string> roots{};          // folders beneath which it reads, byte for byte
  std::vector<std::string> missing_roots{};  // of these, which were not there when the daemon last looked
  std::string indexes_not_kept{};     // for people: why seek indexes go when the daemon stops; empty: they do not
  std::vector<JobStatistics> jobs{};  // of more than a few dozen, the later ones are "other"
  std::vector<UserStatistics> users{};
  std::optional<Cost> own{};            // the daemon's, for no session, all of it control_cpu; none: it is older
  std::chrono::duration<double> cpu{};  // of the daemon and its processes, as the kernel says
};

struct DeviceProperty {
  std::string name{};   // "decoding", "placement"
  std::string value{};  // for people
};

struct Device {
  std::string backend{};  // "cpu": what BatchRequest::backend pins
  std::string name{};
  bool ready = false;  // false: lost
  std::uint32_t lanes = 0;
  std::vector<std::string> formats{};  // "jpeg", "png", "webp", "mrp", "pnm", "bmp", "gif", "tiff", "l3"
  std::string detail{};
  std::vector<DeviceProperty> properties{};  // how it is set up
  // Of a processor: "scalar", "avx2", "avx512bw", "avx512", those of them that it has, the best one last.
  std::vector<std::string> instruction_sets{};
};

}  // namespace client
}  // namespace millrace
