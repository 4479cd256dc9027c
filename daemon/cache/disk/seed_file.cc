#include "daemon/cache/disk/seed_file.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <optional>

#include "daemon/cache/disk/fit_for_store.h"
#include "proto/base/unique_fd.h"

namespace millrace {
namespace {

std::uint64_t random_seed() {
  std::uint64_t seed = 0;
  if (getrandom(&seed, sizeof seed, 0) == sizeof seed) return seed;
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

constexpr std::size_t kSeedBytes = sizeof(std::uint64_t);

// Ours, and nobody else's to read: who knows the seed could work out files of one key.
bool is_secret(const struct stat& status) {
  return S_ISREG(status.st_mode) && status.st_uid == ::geteuid() && (status.st_mode & 077) == 0;
}

std::optional<std::uint64_t> read_seed(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0 || !is_secret(status)) return std::nullopt;
  std::uint64_t seed = 0;
  if (::read(file.get(), &seed, sizeof seed) != sizeof seed) return std::nullopt;
  return seed;
}

// Whole or not at all; where another process was first, its seed stays. Never into a file that is there already: in a
// folder like /tmp it may be somebody else's.
void write_seed(const std::string& path, std::uint64_t seed) {
  const std::string fresh = path + '.' + std::to_string(::getpid());
  ::unlink(fresh.c_str());  // of a process of the same number that died
  const UniqueFd file(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return;
  const bool written = ::write(file.get(), &seed, sizeof seed) == sizeof seed && ::fdatasync(file.get()) == 0;
  if (written) static_cast<void>(::link(fresh.c_str(), path.c_str()) == 0);
  ::unlink(fresh.c_str());
}

// What a failed disk may have left of one.
void remove_if_cut(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && status.st_size < off_t{kSeedBytes})
    ::unlink(path.c_str());
}

}  // namespace

std::string seed_path(const std::string& state_dir) {
  return state_dir + "/seek-index.seed";
}

StateSeed seed_of(const std::string& state_dir) {
  const std::uint64_t fresh = random_seed();
  if (state_dir.empty() || !unfit_for_store(state_dir).empty()) return {.value = fresh};
  const std::string path = seed_path(state_dir);
  if (const auto seed = read_seed(path)) return {*seed, true};
  remove_if_cut(path);
  write_seed(path, fresh);
  const auto kept = read_seed(path);
  return {kept.value_or(fresh), kept.has_value()};
}

}  // namespace millrace
