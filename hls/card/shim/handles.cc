#include "hls/card/shim/handles.h"

#include <mutex>
#include <shared_mutex>
#include <unordered_map>

namespace millrace::card {
namespace {

struct Handles {
  std::shared_mutex mutex;
  std::unordered_map<void*, std::shared_ptr<Client>> clients;
};

Handles& handles() {
  static auto* const all = new Handles;  // XRT closes what it has at the process's very end
  return *all;
}

}  // namespace

void* give_handle(std::shared_ptr<Client> client) {
  void* const handle = client.get();
  std::lock_guard lock(handles().mutex);
  handles().clients[handle] = std::move(client);
  return handle;
}

std::shared_ptr<Client> client_of(void* handle) {
  std::shared_lock lock(handles().mutex);
  const auto found = handles().clients.find(handle);
  return found == handles().clients.end() ? nullptr : found->second;
}

std::shared_ptr<Client> take_handle(void* handle) {
  std::lock_guard lock(handles().mutex);
  auto found = handles().clients.extract(handle);
  return found ? std::move(found.mapped()) : nullptr;
}

}  // namespace millrace::card
