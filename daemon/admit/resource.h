// What the daemon lends to clients and has only so much of: the one table of budgets. A row says what is counted, how a
// refusal speaks of it, which settings raise it and which gauge shows it; how much there is comes from the settings
// (budgets_of()).
//
// A new budget is a row here, its bound in budgets_of(), and charge() where it is taken. Immutable.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

#include "daemon/model/limits.h"
#include "daemon/observe/counters.h"

namespace millrace {

enum class Resource : std::uint8_t {
  kSegments,  // bytes of shared memory
  kSessions,
  kSlots,
  kHandoffConnections,
  kGrpcConnections,
  kQueuedBatches,
  kDatasets,
  kEncoded,   // bytes of files read and not decoded yet
  kDecoding,  // bytes that large pictures take while they are decoded
  kRequests,  // bytes that clients' requests take while they are kept
  kEpochs,
  kDeviceTensors,  // bytes of devices' memory that sessions have, until the process that had them ends
  kExportProcesses,  // that may have devices' memory of closed sessions, each open session as one: the daemon watches them
  kExportRooms,      // closed sessions' memory of devices that their process may have again
};
inline constexpr std::size_t kResources = 14;

inline constexpr std::uint64_t kMostExportProcesses = 256, kMostExportRooms = 128;  // a descriptor each

enum class Unit : std::uint8_t { kCount, kBytes };
// kPart: what one user may have while others may come, see Bounds::parts.
enum class Bound : std::uint8_t { kTotal, kUser, kSession, kPart };

struct ResourceRow {
  Resource id;
  Unit unit;
  std::string_view where;                                   // begins the sentence, if it needs a beginning: "hand-off"
  std::string_view noun;                                    // "sessions"
  std::string_view state;                                   // of those that there are: "are open"
  std::string_view instead;                                 // what the client can do: "close one"
  std::string_view setting, user_setting, session_setting;  // that raises the bound; empty: there is none
  std::optional<MetricId> gauge = std::nullopt;             // that shows what is in use
};

// The setting that raises it; empty: none does. A part grows with the whole.
constexpr std::string_view setting_of(const ResourceRow& row, Bound bound) {
  if (bound == Bound::kUser) return row.user_setting;
  return bound == Bound::kSession ? row.session_setting : row.setting;
}

const ResourceRow& row_of(Resource resource);
std::span<const ResourceRow> resource_table();

inline constexpr std::uint64_t kUnbounded = std::numeric_limits<std::uint64_t>::max();

// Whether something of it is kept for users who have none yet.
enum class Parts : std::uint8_t { kNo, kOfFree };

// With Parts::kOfFree a user may hold so many times what is free: alone 7/8, of two each 7/15 (Choudhury and Hahne,
// Dynamic queue length thresholds, 1998). What is free is for the user who comes next.
inline constexpr std::uint64_t kTimesFree = 7;

// How much there may be in use at once.
struct Bounds {
  std::uint64_t total = kUnbounded;
  std::uint64_t user = kUnbounded;
  std::uint64_t session = kUnbounded;
  Parts parts = Parts::kNo;

  // REQUIRES: not of a part, which changes with what is in use.
  std::uint64_t of(Bound bound) const {
    return bound == Bound::kTotal ? total : bound == Bound::kUser ? user : session;
  }
};

class Budgets {
 public:
  Bounds& operator[](Resource resource) { return bounds_[static_cast<std::size_t>(resource)]; }
  const Bounds& operator[](Resource resource) const { return bounds_[static_cast<std::size_t>(resource)]; }

 private:
  std::array<Bounds, kResources> bounds_{};
};

struct MemoryBudgets {
  Bytes segments{kUnbounded};
  Bytes encoded{kUnbounded};
  Bytes decoding{kUnbounded};
  Bytes requests{kUnbounded};
  Bytes device_tensors{kUnbounded};
  std::uint32_t user_percent = 100;  // of segments, requests and devices' tensors, the most that one user may hold
  Parts parts = Parts::kNo;          // of the same
};
Budgets budgets_of(const SessionLimits& limits, const MemoryBudgets& memory = {});

}  // namespace millrace
