#include "daemon/admit/resource.h"

namespace millrace {
namespace {

// Clients that are just coming, or going: connections beside those of sessions.
constexpr std::uint32_t kComing = 24, kComingPerUser = 8;

constexpr ResourceRow kTable[] = {
    {.id = Resource::kSegments,
     .unit = Unit::kBytes,
     .noun = "the daemon's shared memory",
     .instead = "use fewer or smaller slots, close sessions",
     .setting = "memory.segments",
     .user_setting = "memory.user_percent"},
    {.id = Resource::kSessions,
     .noun = "sessions",
     .state = "are open",
     .instead = "close one",
     .setting = "limits.sessions",
     .user_setting = "limits.sessions_per_user"},
    {.id = Resource::kSlots,
     .noun = "slots",
     .state = "are in use",
     .instead = "ask for fewer",
     .session_setting = "limits.slots"},
    {.id = Resource::kHandoffConnections,
     .where = "hand-off",
     .noun = "connections",
     .state = "are open",
     .instead = "close sessions",
     .setting = "limits.sessions",
     .user_setting = "limits.sessions_per_user"},
    {.id = Resource::kGrpcConnections,
     .where = "gRPC",
     .noun = "connections",
     .state = "are open",
     .instead = "close clients",
     .setting = "limits.connections",
     .user_setting = "limits.connections_per_user"},
    {.id = Resource::kQueuedBatches,
     .noun = "batches",
     .state = "wait for a slot already",
     .instead = "release tensors, open the session with more slots",
     .session_setting = "limits.queued_batches"},
    {.id = Resource::kDatasets,
     .noun = "datasets",
     .state = "are open",
     .instead = "close one",
     .session_setting = "limits.datasets"},
    {.id = Resource::kEncoded,
     .unit = Unit::kBytes,
     .noun = "encoded bytes in flight",
     .instead = "try again when some are decoded",
     .setting = "memory.encoded_in_flight",
     .gauge = MetricId::encoded_in_flight},
    {.id = Resource::kDecoding,
     .unit = Unit::kBytes,
     .noun = "memory for decoding large pictures",
     .instead = "save images smaller",
     .setting = "memory.decoding",
     .gauge = MetricId::decoding_in_use},
    {.id = Resource::kRequests,
     .unit = Unit::kBytes,
     .noun = "memory for requests",
     .instead = "wait until batches and epochs have ended, close datasets, send smaller requests",
     .setting = "memory.requests",
     .user_setting = "memory.user_percent",
     .gauge = MetricId::requests_in_use},
    {.id = Resource::kEpochs,
     .noun = "epochs",
     .state = "are running or being prepared",
     .instead = "wait for one to end, or stop one",
     .session_setting = "limits.epochs"},
    {.id = Resource::kDeviceTensors,
     .unit = Unit::kBytes,
     .noun = "the GPUs' memory for tensors",
     .instead = "use fewer or smaller slots, end processes whose sessions had some",
     .setting = "cuda.tensors",
     .user_setting = "memory.user_percent"},
    {.id = Resource::kExportProcesses,
     .noun = "processes with GPU memory",
     .state = "are there, whose sessions are open or were",
     .instead = "end some"},
    {.id = Resource::kExportRooms,
     .noun = "closed sessions' GPU memory",
     .state = "are kept for their processes",
     .instead = "end some"},
};

constexpr bool in_order() {
  for (std::size_t i = 0; i < kResources; ++i) {
    if (kTable[i].id != static_cast<Resource>(i)) return false;
  }
  return true;
}
static_assert(std::size(kTable) == kResources && in_order());

}  // namespace

const ResourceRow& row_of(Resource resource) {
  return kTable[static_cast<std::size_t>(resource)];
}

std::span<const ResourceRow> resource_table() {
  return kTable;
}

Budgets budgets_of(const SessionLimits& limits, const MemoryBudgets& memory) {
  const auto of_user = [&](Bytes all) {
    return memory.user_percent >= 100 ? kUnbounded : all.count / 100 * memory.user_percent;
  };
  Budgets budgets;
  budgets[Resource::kSegments] = {
      .total = memory.segments.count, .user = of_user(memory.segments), .parts = memory.parts};
  budgets[Resource::kSessions] = {.total = limits.sessions, .user = limits.sessions_per_user};
  budgets[Resource::kSlots].session = limits.slots;
  budgets[Resource::kHandoffConnections] = {.total = std::uint64_t{limits.sessions} + kComing,
                                            .user = std::uint64_t{limits.sessions_per_user} + kComingPerUser};
  budgets[Resource::kGrpcConnections] = {.total = limits.grpc_connections(),
                                         .user = limits.grpc_connections_per_user()};
  budgets[Resource::kQueuedBatches].session = limits.queued_batches;
  budgets[Resource::kDatasets].session = limits.datasets;
  budgets[Resource::kEncoded].total = memory.encoded.count;
  budgets[Resource::kDecoding].total = memory.decoding.count;
  budgets[Resource::kRequests] = {
      .total = memory.requests.count, .user = of_user(memory.requests), .parts = memory.parts};
  budgets[Resource::kEpochs].session = limits.epochs;
  budgets[Resource::kDeviceTensors] = {
      .total = memory.device_tensors.count, .user = of_user(memory.device_tensors), .parts = memory.parts};
  budgets[Resource::kExportProcesses] = {.total = kMostExportProcesses, .parts = memory.parts};
  budgets[Resource::kExportRooms] = {.total = kMostExportRooms, .parts = memory.parts};
  return budgets;
}

}  // namespace millrace
