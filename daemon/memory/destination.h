// Where one image's pixels go: bytes of a session's tensor memory, on the host or on a device. Value.
#pragma once

#include <cstddef>
#include <cstdint>

#include "daemon/model/memory_id.h"
#include "proto/base/bytes.h"

namespace millrace {

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
