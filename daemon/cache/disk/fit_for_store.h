// Whether a folder is a place for a store that several processes share. Thread-safe: plain functions.
#pragma once

#include <cstdint>
#include <string>

namespace millrace {

// Empty: it is. Otherwise why not, for people: there is no such folder, it may not be written to, somebody else can
// exchange what is in it, or it is on a file system whose files and locks other machines change, or programs that serve
// it.
std::string unfit_for_store(const std::string& folder);

// `type` as statfs() gives it (statfs(2)): NFS, SMB, 9P, FUSE, clusters' ...
bool is_remote_file_system(std::uint64_t type);

}  // namespace millrace
