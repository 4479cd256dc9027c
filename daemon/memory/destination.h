// Where one image's pixels go: bytes of a session's tensor memory, on the host or on a device. Value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "proto/base/bytes.h"

namespace millrace {

// One of the memories that tensors can lie in: the host's, or a device's. Numbered when the daemon starts.
enum class MemoryId : std::uint32_t {};
inline constexpr MemoryId kHostMemory{0};
inline constexpr std::string_view kHostMemoryName = "host";  // to clients

struct Destination {
  MemoryId memory = kHostMemory;
  // Of the host's memory: from the segment's start. Of a device's: as that device addresses it.
  std::uint64_t offset = 0;
  Bytes bytes;
  std::byte* host = nullptr;  // the same bytes for the processor; nullptr: it cannot address them

  MutableByteView view() const { return MutableByteView(host, bytes.count); }  // REQUIRES: host is not nullptr
};

// Host memory that belongs to no segment, as a place to write to.
inline Destination in_host_memory(MutableByteView bytes) {
  return {.bytes = {bytes.size()}, .host = bytes.data()};
}

}  // namespace millrace
