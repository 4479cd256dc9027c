#include "daemon/cache/seed_file.h"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <chrono>
#include <optional>

#include "proto/base/unique_fd.h"

namespace millrace {
namespace {

std::uint64_t random_seed() {
  std::uint64_t seed = 0;
  if (getrandom(&seed, sizeof seed, 0) == sizeof seed) return seed;
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

std::optional<std::uint64_t> read_seed(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  std::uint64_t seed = 0;
  if (!file || ::read(file.get(), &seed, sizeof seed) != sizeof seed) return std::nullopt;
  return seed;
}

// Whole or not at all; where another process was first, its seed stays.
void write_seed(const std::string& path, std::uint64_t seed) {
  const std::string fresh = path + '.' + std::to_string(::getpid());
  const UniqueFd file(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return;
  const bool written = ::write(file.get(), &seed, sizeof seed) == sizeof seed;
  if (written) static_cast<void>(::link(fresh.c_str(), path.c_str()) == 0);
  ::unlink(fresh.c_str());
}

}  // namespace

std::uint64_t seed_of(const std::string& state_dir) {
  const std::uint64_t fresh = random_seed();
  if (state_dir.empty()) return fresh;
  const std::string path = state_dir + "/seek-index.seed";
  if (const auto seed = read_seed(path)) return *seed;
  write_seed(path, fresh);
  return read_seed(path).value_or(fresh);
}

}  // namespace millrace
