// Who knows of whom: vector clocks of streams and of the host (one for all its threads). Two operations that touch the
// same bytes, one of them writing, without anything that orders them are reported, whatever the delays were. Clocks are
// kept as calls are made, accesses as operations run. Not seen: what a host does itself, what orders streams by words
// in memory (cuStreamWaitValue64), and other processes.
//
// Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "proto/cuda/driver_api.h"

namespace millrace::sim {

// By stream, the last of its operations that one knows of.
using Knowledge = std::vector<std::uint32_t>;

struct Stamp {
  std::size_t stream = 0;
  std::string what;
  Knowledge knows;  // its own entry is its time
};

std::size_t add_stream();
// Of an operation that is being given to a stream.
Stamp stamp(std::size_t stream, const std::string& what);
Knowledge known_to_stream(std::size_t stream);
void stream_learns(std::size_t stream, const Knowledge& knows);
void host_learns(const Knowledge& knows);

// Around each operation of a stream, in their order, whether it does anything or not: what it touches is `stamp`'s.
void begin_operation(const Stamp& stamp);
void end_operation();
// The operation tells the host that it runs, and so that all before it is done.
void operation_tells_host();
// The operation reads or writes `size` bytes at `at`.
void touch(cuda::CUdeviceptr at, std::size_t size, bool write);
// No stream uses those bytes any more: what does so later is ordered after all that did.
void forget(cuda::CUdeviceptr at, std::size_t size);

}  // namespace millrace::sim
