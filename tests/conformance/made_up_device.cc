#include "tests/conformance/made_up_device.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

namespace millrace {
namespace {

[[noreturn]] void fault(const char* what) {
  std::fprintf(stderr, "made-up device: %s\n", what);
  std::abort();
}

void write_at(int fd, std::int64_t offset, ByteView bytes) {
  if (::pwrite(fd, bytes.data(), bytes.size(), offset) != static_cast<ssize_t>(bytes.size())) fault("a write failed");
}

}  // namespace

void MadeUpDevice::Engine::upload(std::uint64_t to, ByteView from) {
  const Place place = device_.place_of(to, Bytes{from.size()});
  write_at(place.descriptor, place.offset, from);
}

void MadeUpDevice::Engine::fill_with_zeroes(std::uint64_t to, Bytes bytes) {
  upload(to, std::vector<std::byte>(bytes.count));
}

void MadeUpDevice::Engine::move(std::uint64_t to, std::uint64_t from, Bytes bytes) {
  const Place source = device_.place_of(from, bytes);
  std::vector<std::byte> moved(bytes.count);
  if (::pread(source.descriptor, moved.data(), moved.size(), source.offset) != static_cast<ssize_t>(moved.size()))
    fault("a read failed");
  upload(to, moved);
}

MadeUpDevice::~MadeUpDevice() {
  {
    MutexLock lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::uint64_t MadeUpDevice::allocate(Bytes bytes) {
  Allocation made{UniqueFd(::memfd_create("made-up device", MFD_CLOEXEC)), bytes};
  if (!made.descriptor || ::ftruncate(made.descriptor.get(), static_cast<off_t>(bytes.count)) != 0)
    fault("no memory to pretend with");
  MutexLock lock(mutex_);
  const std::uint64_t address = std::exchange(next_address_, next_address_ + 2 * align_up(bytes, 4096).count);
  allocations_.emplace(address, std::move(made));
  return address;
}

void MadeUpDevice::free(std::uint64_t address) {
  MutexLock lock(mutex_);
  if (allocations_.erase(address) == 0) fault("freed what is not allocated");
}

std::size_t MadeUpDevice::allocations() {
  MutexLock lock(mutex_);
  return allocations_.size();
}

int MadeUpDevice::descriptor(std::uint64_t address) {
  MutexLock lock(mutex_);
  return allocations_.at(address).descriptor.get();
}

void MadeUpDevice::enqueue(Work work, std::function<void(End)> done) {
  {
    MutexLock lock(mutex_);
    queue_.push_back({std::move(work), std::move(done)});
  }
  changed_.notify_all();
}

void MadeUpDevice::hold() {
  MutexLock lock(mutex_);
  held_ = true;
}

void MadeUpDevice::let_go() {
  {
    MutexLock lock(mutex_);
    held_ = false;
  }
  changed_.notify_all();
}

std::size_t MadeUpDevice::waiting() {
  MutexLock lock(mutex_);
  return queue_.size();
}

void MadeUpDevice::lose() {
  health_.lost("made to be lost");  // before what waits comes back
  {
    MutexLock lock(mutex_);
    lost_ = true;
  }
  changed_.notify_all();
}

bool MadeUpDevice::lost() const {
  MutexLock lock(mutex_);
  return lost_;
}

MadeUpDevice::Place MadeUpDevice::place_of(std::uint64_t address, Bytes bytes) {
  MutexLock lock(mutex_);
  auto after = allocations_.upper_bound(address);
  if (after == allocations_.begin()) fault("an address of nothing");
  const auto& [begin, allocation] = *--after;
  if (Bytes{address - begin} + bytes > allocation.bytes) fault("bytes beyond an allocation");
  return {allocation.descriptor.get(), static_cast<std::int64_t>(address - begin)};
}

void MadeUpDevice::run_device() {
  Engine engine(*this);
  while (true) {
    Queued next;
    bool works = true;
    {
      MutexLock lock(mutex_);
      while (!closed_ && (queue_.empty() || (held_ && !lost_))) changed_.wait(mutex_);
      if (queue_.empty()) return;
      next = std::move(queue_.front());
      queue_.pop_front();
      works = !lost_;
    }
    if (works) next.work(engine);
    next.done(works ? End::kDone : End::kLost);
  }
}

}  // namespace millrace
