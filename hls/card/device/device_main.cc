// millrace-card-device: what a simulated card is. Started by the shim, one for each time a card is programmed; the
// bitstream is a shared object whose functions are the kernels.
//
//   millrace-card-device CARD MEMORY_BYTES KERNEL:UNIT...        descriptors: hls/card/wire.h
//
// A crash in a kernel ends the process: the card fell off the bus. So does the end of the host process, however it ends.
#include <dlfcn.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "hls/card/device/adapter.h"
#include "hls/card/device/apertures.h"
#include "hls/card/device/harms.h"

namespace millrace::card {
namespace {

struct Device {
  std::string name;
  std::byte* memory;
  std::uint32_t* registers;
  Apertures* apertures;
  void* bitstream;
};

[[noreturn]] void give_up(const std::string& card, const std::string& why) {
  std::fprintf(stderr, "simulated card %s: %s\n", card.c_str(), why.c_str());
  std::_Exit(1);
}

void* map(int descriptor, std::uint64_t bytes, int access) {
  void* const at = mmap(nullptr, bytes, access, MAP_SHARED | MAP_NORESERVE, descriptor, 0);
  return at == MAP_FAILED ? nullptr : at;
}

void reply(const Done& done) {
  if (send(kReplies, &done, sizeof done, MSG_NOSIGNAL) != sizeof done) _exit(0);  // nobody is there
}

Outcome run(const Device& device, KernelFunction kernel, const Start& start) {
  harm_before(start);
  for (const Window& window : start.windows)
    if (!device.apertures->open(window)) return Outcome::kRefused;
  const Call call{&start, device.memory};
  if (!call_kernel(kernel, call)) return Outcome::kRefused;
  harm_after(call);
  return Outcome::kDone;
}

// The control register, as Vitis HLS has it: started, done and idle and ready.
constexpr std::uint32_t kStarted = 1, kIdle = 4, kFinished = 0xe;

void serve_unit(const Device& device, unsigned unit, KernelFunction kernel) {
  std::uint32_t* const registers = device.registers + unit * kMostRegisters;
  const auto start = std::make_unique<Start>();
  for (;;) {
    const ssize_t bytes = recv(kFirstUnit + static_cast<int>(unit), start.get(), sizeof(Start), 0);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < static_cast<ssize_t>(offsetof(Start, registers))) return;  // the main thread sees the end as well
    for (std::size_t i = 4; i < start->words; ++i) registers[i] = start->registers[i];
    __atomic_store_n(registers, kStarted, __ATOMIC_RELEASE);
    const Outcome outcome = run(device, kernel, *start);
    __atomic_store_n(registers, kFinished, __ATOMIC_RELEASE);
    reply({start->sequence, unit, outcome});
  }
}

KernelFunction find_kernel(const Device& device, const std::string& unit) {
  const std::string kernel = unit.substr(0, unit.find(':'));
  void* const found = dlsym(device.bitstream, kernel.c_str());
  if (found == nullptr) give_up(device.name, "its bitstream has no kernel " + kernel);
  return reinterpret_cast<KernelFunction>(found);
}

// Of the socket, or of the host process: one that was forked from it may have the socket as well.
void wait_for_the_end() {
  pollfd ends[2] = {{kReplies, POLLIN, 0}, {static_cast<int>(syscall(SYS_pidfd_open, getppid(), 0)), POLLIN, 0}};
  while (poll(ends, 2, -1) < 0 && errno == EINTR) {
  }
  _exit(0);  // threads may be in kernels that hang
}

int serve(const std::string& card, std::uint64_t memory_bytes, const std::vector<std::string>& units) {
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  close_range(kFirstUnit + static_cast<unsigned>(units.size()), ~0u, 0);  // what the host let through is none of ours
  Device device{.name = card,
                .memory = static_cast<std::byte*>(map(kMemory, memory_bytes, PROT_NONE)),
                .registers = static_cast<std::uint32_t*>(
                    map(kRegisters, units.size() * hls::kRegisterBytes, PROT_READ | PROT_WRITE)),
                .apertures = nullptr,
                .bitstream = dlopen(("/proc/self/fd/" + std::to_string(kBitstream)).c_str(), RTLD_NOW)};
  if (device.memory == nullptr || device.registers == nullptr) give_up(card, "its memory cannot be mapped");
  if (device.bitstream == nullptr) give_up(card, std::string("its bitstream cannot be loaded: ") + dlerror());
  Apertures apertures(device.memory, memory_bytes);
  device.apertures = &apertures;
  std::vector<KernelFunction> kernels;
  for (const std::string& unit : units) kernels.push_back(find_kernel(device, unit));
  for (unsigned unit = 0; unit < units.size(); ++unit) {
    device.registers[unit * kMostRegisters] = kIdle;
    std::thread(serve_unit, std::cref(device), unit, kernels[unit]).detach();
  }
  reply({0, 0, Outcome::kReady});
  wait_for_the_end();
  return 0;
}

}  // namespace
}  // namespace millrace::card

int main(int count, char** arguments) {
  if (count < 4) {
    std::fprintf(stderr, "millrace-card-device is started by the simulated card's libxrt_core.so.2 alone\n");
    return 2;
  }
  return millrace::card::serve(arguments[1], std::strtoull(arguments[2], nullptr, 0),
                               {arguments + 3, arguments + count});
}
