#include "daemon/serve/handoff/descriptor_plan.h"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <string>

#include "daemon/admit/resource.h"
#include "daemon/door/grpc_connections.h"
#include "daemon/door/unix_listener.h"

namespace millrace {
namespace {

// Sockets, epoll, gRPC's, the store's (two or three), of which 25 were counted. Clients that were turned away are let go
// of when descriptors are short.
constexpr std::uint64_t kOwn = 48;
constexpr std::uint64_t kPerSession = 4;       // segment (two), reply socket, input ring
constexpr std::uint64_t kPerDeviceMemory = 2;  // its descriptor, and the process that it was exported to
constexpr std::uint64_t kFilesAndLists = 32;   // folders that are being listed, and some to spare
constexpr std::uint64_t kPerFetchThread = 16;  // half of them held in reserve (fetch/read/spare_descriptors.h)
constexpr std::uint64_t kPerRoot = 4;          // with the folders above it
constexpr std::uint64_t kPerDecoder = 2;       // its channel and the memory in common
constexpr std::uint64_t kOpenedAhead = 16;     // by an opener, for each fetch thread

std::uint64_t for_files(const DescriptorNeeds& needs) {
  const std::uint64_t ahead = needs.opener == WithOpener::kYes ? kOpenedAhead : 0;
  return kFilesAndLists + (kPerFetchThread + ahead) * needs.fetch_threads;
}

// Of sessions that are open, and of processes whose sessions were, with what they may have again.
std::uint64_t for_device_memory(const DescriptorNeeds& needs) {
  if (!needs.device_memory) return 0;
  return kPerDeviceMemory * needs.sessions.sessions + kMostExportProcesses + kMostExportRooms;
}

// Connections to it: of fetch threads and of the one that lists, for each root, and to introduce clients.
std::uint64_t for_opener(const DescriptorNeeds& needs) {
  if (needs.opener == WithOpener::kNo) return 0;
  return (needs.roots + 1) * (std::uint64_t{needs.fetch_threads} + 1);
}

}  // namespace

std::uint64_t descriptors_needed(const DescriptorNeeds& needs) {
  constexpr std::uint64_t kKept = UnixListener::kKept;
  const std::uint64_t handoff = budgets_of(needs.sessions)[Resource::kHandoffConnections].total + kKept;
  return kOwn + kPerRoot * needs.roots + kPerDecoder * needs.decoders + for_files(needs) + handoff + for_opener(needs) +
         kPerSession * needs.sessions.sessions + for_device_memory(needs) +
         std::uint64_t{kDescriptorsPerGrpcConnection} * (needs.sessions.grpc_connections() + kKept);
}

Result<int> highest_for_connections(const DescriptorNeeds& needs, std::uint64_t limit) {
  const std::uint64_t needed = descriptors_needed(needs);
  if (needed > limit) {
    return Error{Code::kExhausted,
                 "the daemon may have " + std::to_string(limit) + " descriptors and can come to need " +
                     std::to_string(needed) + ", for " + std::to_string(needs.sessions.sessions) + " sessions and " +
                     std::to_string(needs.sessions.grpc_connections()) +
                     " connections: raise its limit (LimitNOFILE= in the unit, or ulimit -n), or lower "
                     "limits.sessions and limits.connections in the settings"};
  }
  const std::uint64_t highest = std::min<std::uint64_t>(limit, std::numeric_limits<int>::max()) - for_files(needs) - 1;
  return static_cast<int>(highest);
}

Result<int> prepare_descriptors(const DescriptorNeeds& needs) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return errno_error("asking how many descriptors there may be", errno);
  const std::uint64_t needed = descriptors_needed(needs);
  if (limit.rlim_cur < needed && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = std::min<rlim_t>(needed, limit.rlim_max);
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return errno_error("raising the limit of descriptors", errno);
  }
  return highest_for_connections(needs, limit.rlim_cur);
}

}  // namespace millrace
