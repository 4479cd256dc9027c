#include "hls/card/shim/device_process.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>

#include "hls/card/shim/settings.h"

namespace millrace::card {
namespace {

struct Pair {
  Descriptor here, there;
};

Pair make_pair_of_sockets() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return {};
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

// Sealed off from the file that the xclbin came from.
Descriptor copy_of(std::span<const std::byte> bitstream) {
  Descriptor file(memfd_create("bitstream", MFD_CLOEXEC));
  for (std::size_t written = 0; file && written < bitstream.size();) {
    const ssize_t count = write(file.get(), bitstream.data() + written, bitstream.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return {};
    written += static_cast<std::size_t>(count);
  }
  return file;
}

// bin/ beside the lib/ that this library is in.
std::string device_program() {
  if (!settings().device_program.empty()) return settings().device_program;
  Dl_info self{};
  dladdr(reinterpret_cast<const void*>(&device_program), &self);
  std::error_code ignored;
  const auto library = std::filesystem::canonical(self.dli_fname == nullptr ? "" : self.dli_fname, ignored);
  return library.parent_path().parent_path() / "bin" / "millrace-card-device";
}

// `descriptors` become 3, 4, ... in the child, by way of high numbers, which these cannot be.
int spawn(pid_t& pid, const std::vector<std::string>& words, const std::vector<int>& descriptors) {
  constexpr int kHigh = 256;
  std::vector<Descriptor> high;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (std::size_t i = 0; i < descriptors.size(); ++i) {
    high.emplace_back(fcntl(descriptors[i], F_DUPFD_CLOEXEC, kHigh));
    posix_spawn_file_actions_adddup2(&actions, high.back().get(), static_cast<int>(i) + kReplies);
  }
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  // The host's signal mask is none of the card's business.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  const int error = posix_spawn(&pid, words[0].c_str(), &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

}  // namespace

std::unique_ptr<DeviceProcess> DeviceProcess::start(unsigned card, const Program& program, const CardMemory& memory,
                                                    const Mapping& registers, int& error) {
  const Descriptor bitstream = copy_of(program.bitstream);
  Pair replies = make_pair_of_sockets();
  std::vector<std::string> words{device_program(), std::to_string(card), std::to_string(memory.mapping().bytes())};
  std::vector<Descriptor> here, there;
  std::vector<int> descriptors{replies.there.get(), memory.mapping().descriptor(), registers.descriptor(),
                               bitstream.get()};
  for (const std::string& unit : program.units) {
    Pair pair = make_pair_of_sockets();
    descriptors.push_back(pair.there.get());
    here.push_back(std::move(pair.here));
    there.push_back(std::move(pair.there));
    words.push_back(unit);
  }
  for (const int descriptor : descriptors) error = descriptor < 0 ? -EMFILE : error;
  if (error != 0) return nullptr;
  pid_t pid = -1;
  if (const int failed = spawn(pid, words, descriptors); failed != 0) {
    complain(card, "cannot start %s: %s", words[0].c_str(), std::strerror(failed));
    error = -failed;
    return nullptr;
  }
  auto process = std::make_unique<DeviceProcess>(pid, std::move(replies.here), std::move(here));
  replies.there = Descriptor();
  there.clear();
  Done ready{};
  if (process->receive(ready) && ready.outcome == Outcome::kReady) return process;
  error = -EINVAL;
  return nullptr;
}

DeviceProcess::~DeviceProcess() {
  kill();
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

bool DeviceProcess::send(unsigned unit, const Start& start) const {
  const std::size_t bytes = offsetof(Start, registers) + start.words * sizeof(std::uint32_t);
  return ::send(units_[unit].get(), &start, bytes, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes);
}

bool DeviceProcess::receive(Done& done) const {
  for (;;) {
    const ssize_t bytes = recv(replies_.get(), &done, sizeof done, 0);
    if (bytes < 0 && errno == EINTR) continue;
    return bytes == sizeof done;
  }
}

void DeviceProcess::kill() const {
  ::kill(pid_, SIGKILL);
}

}  // namespace millrace::card
