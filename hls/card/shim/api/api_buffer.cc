// XRT's interface to a card (xrt.h): buffers.
#include <xrt.h>

#include <cerrno>
#include <cstring>

#include "hls/card/shim/card.h"
#include "hls/card/shim/handles.h"
#include "hls/card/shim/settings.h"

namespace card = millrace::card;

namespace {

xclBufferHandle allocate(xclDeviceHandle handle, void* user, std::size_t bytes, unsigned flags) {
  const std::shared_ptr<card::Client> client = card::client_of(handle);
  if (client == nullptr) {
    errno = EINVAL;
    return XRT_NULL_BO;
  }
  card::Card& on = client->card();
  const bool is_command = (flags & XCL_BO_FLAGS_EXECBUF) != 0;
  if (!is_command && on.check_alive() != 0) {
    errno = EIO;
    return XRT_NULL_BO;
  }
  auto buffer =
      is_command ? card::Buffer::make_command(bytes, flags) : card::Buffer::make(on.memory(), user, bytes, flags);
  if (buffer == nullptr) {
    if (errno == EINVAL)
      card::complain(on.number(), "no bank %u for a buffer", flags & static_cast<unsigned>(XRT_BO_FLAGS_MEMIDX_MASK));
    return XRT_NULL_BO;
  }
  card::trace(on.number(), "buffer of %zu bytes, flags %#x, at %#llx", bytes, flags,
              static_cast<unsigned long long>(buffer->address()));
  return client->add(std::move(buffer));
}

// Both nullptr, or neither.
struct Found {
  std::shared_ptr<card::Client> client;
  std::shared_ptr<card::Buffer> buffer;
  explicit operator bool() const { return buffer != nullptr; }
};

Found find(xclDeviceHandle handle, xclBufferHandle number) {
  std::shared_ptr<card::Client> client = card::client_of(handle);
  std::shared_ptr<card::Buffer> buffer = client == nullptr ? nullptr : client->buffer(number);
  return buffer == nullptr ? Found{} : Found{std::move(client), std::move(buffer)};
}

}  // namespace

xclBufferHandle xclAllocBO(xclDeviceHandle handle, std::size_t bytes, int, unsigned int flags) {
  return allocate(handle, nullptr, bytes, flags);
}

xclBufferHandle xclAllocUserPtrBO(xclDeviceHandle handle, void* user, std::size_t bytes, unsigned int flags) {
  return allocate(handle, user, bytes, flags);
}

void xclFreeBO(xclDeviceHandle handle, xclBufferHandle number) {
  if (const std::shared_ptr<card::Client> client = card::client_of(handle)) client->remove(number);
}

void* xclMapBO(xclDeviceHandle handle, xclBufferHandle number, bool) {
  const Found found = find(handle, number);
  return found ? found.buffer->host() : nullptr;
}

int xclUnmapBO(xclDeviceHandle, xclBufferHandle, void*) {
  return 0;  // it stays as long as the buffer
}

int xclSyncBO(xclDeviceHandle handle, xclBufferHandle number, xclBOSyncDirection direction, std::size_t bytes,
              std::size_t offset) {
  const Found found = find(handle, number);
  if (!found) return -EINVAL;
  if (const int error = found.client->card().check_alive(); error != 0) return error;
  const bool to_card = direction == XCL_BO_SYNC_BO_TO_DEVICE;
  return found.buffer->copy(to_card ? card::Buffer::Direction::kToCard : card::Buffer::Direction::kFromCard, bytes,
                            offset);
}

int xclCopyBO(xclDeviceHandle handle, xclBufferHandle to, xclBufferHandle from, std::size_t bytes,
              std::size_t to_offset, std::size_t from_offset) {
  const Found target = find(handle, to), source = find(handle, from);
  return target && source ? target.buffer->copy_from(*source.buffer, bytes, to_offset, from_offset) : -EINVAL;
}

int xclGetBOProperties(xclDeviceHandle handle, xclBufferHandle number, xclBOProperties* properties) {
  const Found found = find(handle, number);
  if (!found) return -EINVAL;
  properties->handle = number;
  properties->flags = found.buffer->flags();
  properties->size = found.buffer->bytes();
  properties->paddr = found.buffer->address();
  return 0;
}

// What cards have and these do not.
xclBufferExportHandle xclExportBO(xclDeviceHandle, xclBufferHandle) {
  return XRT_NULL_BO_EXPORT;
}

xclBufferHandle xclImportBO(xclDeviceHandle, xclBufferExportHandle, unsigned int) {
  return XRT_NULL_BO;
}

ssize_t xclUnmgdPread(xclDeviceHandle, unsigned int, void*, std::size_t, std::uint64_t) {
  return -ENOSYS;
}

ssize_t xclUnmgdPwrite(xclDeviceHandle, unsigned int, const void*, std::size_t, std::uint64_t) {
  return -ENOSYS;
}
