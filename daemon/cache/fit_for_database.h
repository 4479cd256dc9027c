// Whether a database that several processes map may lie in a folder. Thread-safe: plain functions.
#pragma once

#include <cstdint>
#include <string>

namespace millrace {

// Empty: it may. Otherwise why not, for people: there is no such folder, it may not be written to, or it is on a file
// system whose locks and mapped pages other machines change, or programs that serve it, which LMDB does not survive.
std::string unfit_for_database(const std::string& folder);

// `type` as statfs() gives it (statfs(2)): NFS, SMB, 9P, FUSE, clusters' ...
bool is_remote_file_system(std::uint64_t type);

}  // namespace millrace
