#include "daemon/fetch/open/folder_verdicts.h"

namespace millrace {
namespace {

template <class T>
void append_bytes(std::string& key, const T& value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Everything that the permission depends on; the count of groups keeps them and the path apart.
std::string key_of(const Caller& caller, std::string_view path) {
  std::string key;
  key.reserve(path.size() + (caller.groups.size() + 4) * sizeof(gid_t));
  append_bytes(key, caller.uid);
  append_bytes(key, caller.gid);
  append_bytes(key, caller.groups.size());
  for (const gid_t group : caller.groups) append_bytes(key, group);
  key += path;
  return key;
}

}  // namespace

bool FolderVerdicts::allowed(const Caller& caller, std::string_view path, const struct stat& found,
                             Clock::time_point now) const {
  const std::string key = key_of(caller, path);
  MutexLock lock(mutex_);
  const auto verdict = verdicts_.find(key);
  if (verdict == verdicts_.end()) return false;
  return verdict->second.device == found.st_dev && verdict->second.inode == found.st_ino &&
         now - verdict->second.since < kLifetime;
}

void FolderVerdicts::allow(const Caller& caller, std::string_view path, const struct stat& found,
                           Clock::time_point now) {
  std::string key = key_of(caller, path);
  MutexLock lock(mutex_);
  if (verdicts_.size() >= kMost) {
    std::erase_if(verdicts_, [&](const auto& entry) { return now - entry.second.since >= kLifetime; });
    if (verdicts_.size() >= kMost) verdicts_.clear();
  }
  verdicts_.insert_or_assign(std::move(key), Verdict{found.st_dev, found.st_ino, now});
}

}  // namespace millrace
