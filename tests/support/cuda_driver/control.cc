#include "tests/support/cuda_driver/control.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace millrace::sim {
namespace {

[[noreturn]] void give_up(const char* what) {
  std::fprintf(stderr, "simulated CUDA: the control file %s: %s\n", settings().control.c_str(), what);
  std::abort();
}

}  // namespace

Control& Control::get() {
  static auto* const control = new Control;
  return *control;
}

Control::Control() {
  const std::string& path = settings().control;
  file_ = UniqueFd(path.empty() ? memfd_create("simulated control", MFD_CLOEXEC)
                                : open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file_ || ftruncate(file_.get(), sizeof(Page)) != 0) give_up("cannot be opened");
  void* const at = mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  if (at == MAP_FAILED) give_up("cannot be mapped");
  page_ = static_cast<Page*>(at);
}

bool Control::lock_slot(int slot, int command) const {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = slot;
  lock.l_len = 1;
  return fcntl(file_.get(), command, &lock) == 0 && (command != F_OFD_GETLK || lock.l_type == F_UNLCK);
}

int Control::mine() {
  MutexLock lock(mutex_);
  for (int slot = 0; slot_ < 0 && slot < kMostProcesses; ++slot) {
    if (!lock_slot(slot, F_OFD_SETLK)) continue;
    for (auto& bytes : page_->processes[slot].bytes) bytes = 0;  // of a process that ended
    slot_ = slot;
  }
  if (slot_ < 0) give_up("too many processes");
  return slot_;
}

bool Control::charge(int device, std::uint64_t bytes) {
  std::atomic<std::uint64_t>& of_mine = page_->processes[mine()].bytes[device];
  of_mine += bytes;
  if (used(device) <= settings().vram_bytes) return true;
  of_mine -= bytes;
  return false;
}

void Control::release(int device, std::uint64_t bytes) {
  page_->processes[mine()].bytes[device] -= bytes;
}

std::uint64_t Control::used(int device) {
  int self = -1;
  {
    MutexLock lock(mutex_);
    self = slot_;
  }
  std::uint64_t sum = 0;
  for (int slot = 0; slot < kMostProcesses; ++slot) {
    const std::uint64_t bytes = page_->processes[slot].bytes[device];
    const bool lives = bytes != 0 && (slot == self || !lock_slot(slot, F_OFD_GETLK));
    if (lives) sum += bytes;
  }
  return sum;
}

}  // namespace millrace::sim
