#include "hls/card/shim/control.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "hls/card/shim/descriptor.h"

namespace millrace::card {
namespace {

constexpr int kMostProcesses = 64;

struct Page {
  CardControl cards[kMostCards];
  struct {
    UnitUse cards[kMostCards];
  } processes[kMostProcesses];
};

[[noreturn]] void give_up(const char* what) {
  std::fprintf(stderr, "simulated cards: the control file %s: %s\n", settings().control.c_str(), what);
  std::abort();
}

// Never closed: the locks last as long as the process.
struct File {
  File();
  // On a byte: of a process's slot, or behind these of a card.
  bool lock(int byte, short type, int command) const;
  bool is_locked(int byte) const;

  Descriptor descriptor;
  Page* page;
  int slot = -1;
};

File::File()
    : descriptor(settings().control.empty() ? memfd_create("card control", MFD_CLOEXEC)
                                            : open(settings().control.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
  if (!descriptor || ftruncate(descriptor.get(), sizeof(Page)) != 0) give_up("cannot be opened");
  void* const at = mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor.get(), 0);
  if (at == MAP_FAILED) give_up("cannot be mapped");
  page = static_cast<Page*>(at);
  for (int i = 0; slot < 0 && i < kMostProcesses; ++i)
    if (lock(i, F_WRLCK, F_OFD_SETLK)) slot = i;
  if (slot < 0) give_up("too many processes");
  for (UnitUse& use : page->processes[slot].cards) use = {};  // of a process that ended
}

bool File::lock(int byte, short type, int command) const {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  int result = -1;
  do result = fcntl(descriptor.get(), command, &lock);
  while (result != 0 && errno == EINTR);
  return result == 0;
}

bool File::is_locked(int byte) const {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  return fcntl(descriptor.get(), F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

File& file() {
  static auto* const shared = new File;
  return *shared;
}

}  // namespace

CardControl& control_of(unsigned card) {
  return file().page->cards[card];
}

UnitUse& own_use_of(unsigned card) {
  return file().page->processes[file().slot].cards[card];
}

UnitUse others_use_of(unsigned card) {
  UnitUse all{};
  for (int slot = 0; slot < kMostProcesses; ++slot) {
    if (slot == file().slot || !file().is_locked(slot)) continue;
    const UnitUse& use = file().page->processes[slot].cards[card];
    all.exclusive |= use.exclusive;
    for (std::size_t i = 0; i < all.contexts.size(); ++i)
      all.contexts[i] = static_cast<std::uint8_t>(std::min(255, all.contexts[i] + use.contexts[i]));
  }
  return all;
}

CardLock::CardLock(unsigned card) : card_(card) {
  file().lock(kMostProcesses + static_cast<int>(card_), F_WRLCK, F_OFD_SETLKW);
}

CardLock::~CardLock() {
  file().lock(kMostProcesses + static_cast<int>(card_), F_UNLCK, F_OFD_SETLK);
}

std::uint64_t milliseconds_now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
}

}  // namespace millrace::card
