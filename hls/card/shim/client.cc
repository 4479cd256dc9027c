#include "hls/card/shim/client.h"

namespace millrace::card {

void Client::keep(std::shared_ptr<xrt_core::device> device) {
  std::lock_guard lock(mutex_);
  device_ = std::move(device);
}

unsigned Client::add(std::shared_ptr<Buffer> buffer) {
  std::lock_guard lock(mutex_);
  buffers_[next_] = std::move(buffer);
  return next_++;
}

std::shared_ptr<Buffer> Client::buffer(unsigned handle) const {
  std::lock_guard lock(mutex_);
  const auto found = buffers_.find(handle);
  return found == buffers_.end() ? nullptr : found->second;
}

std::shared_ptr<Buffer> Client::remove(unsigned handle) {
  std::lock_guard lock(mutex_);
  auto found = buffers_.extract(handle);
  return found ? std::move(found.mapped()) : nullptr;
}

void Client::finished() {
  {
    std::lock_guard lock(mutex_);
    ++finished_;
  }
  some_finished_.notify_all();
}

bool Client::wait_finished(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  const auto some = [&] { return finished_ > 0; };
  if (limit.count() < 0)
    some_finished_.wait(lock, some);
  else if (!some_finished_.wait_for(lock, limit, some))
    return false;
  --finished_;
  return true;
}

void Client::close() {
  std::map<unsigned, std::shared_ptr<Buffer>> buffers;
  std::shared_ptr<xrt_core::device> device;
  std::lock_guard lock(mutex_);
  buffers.swap(buffers_);
  device.swap(device_);
}

}  // namespace millrace::card
