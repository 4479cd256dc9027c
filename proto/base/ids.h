// Identities that travel between parts and processes. Enum classes over integers: comparable, hashable, never mixed up.
// Immutable.
#pragma once

#include <cstdint>

namespace millrace {

enum class UserId : std::uint32_t {};      // who the kernel says is asking: a uid of the daemon's host
enum class ClientId : std::uint64_t {};    // one connection to the hand-off socket: a process
enum class SessionId : std::uint64_t {};   // daemon-wide, never reused while the daemon lives
enum class BatchId : std::uint64_t {};     // unique in its session: chosen by the client, or counted in an epoch
enum class DatasetId : std::uint64_t {};   // unique in its session
enum class SampleId : std::uint64_t {};    // place in a dataset's sorted listing; in a request what the client says
enum class SlotIndex : std::uint32_t {};   // in a session's segment
enum class Generation : std::uint64_t {};  // of a slot: grows at every lease, so that an old handle is stale

template <class Id>
requires __is_enum(Id) constexpr auto raw(Id id) {
  return static_cast<__underlying_type(Id)>(id);
}

}  // namespace millrace
