// Which users and groups this process cannot tell apart. In a user namespace that maps only some ids, as a rootless
// container's, files and processes of all the others appear under one id (user_namespaces(7), "Unmapped user and group
// IDs"). Thread-safe: plain functions.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

namespace millrace {

// The ids that stand for all that are not mapped. None where every id is mapped, as in the initial namespace: there
// 65534 is the user `nobody` and no one else.
struct UnmappedIds {
  std::optional<uid_t> user;
  std::optional<gid_t> group;
};

// Of this process, as /proc says; read it once, at the start. What cannot be read counts as not mapping every id.
UnmappedIds unmapped_ids(const std::string& proc = "/proc");

// Whether `map`, the text of a /proc/PID/uid_map or gid_map, maps every id. false for what is no such text.
bool maps_every_id(std::string_view map);

}  // namespace millrace
