// How long operations take: SIM_CUDA_DURATIONS is a list of NAME=MICROSECONDS or NAME=MICROSECONDS/BYTES, divided by
// semicolons; BYTES: so many a microsecond come on top. An operation keeps its engine for so long at least, and the
// processor is free meanwhile.
//
//   HtoD=3/25000;DtoH=3/25000;DtoD=3/1000000;millrace_tokenise=800;millrace_reconstruct=200
//
// A list that cannot be read ends the process. Thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <string_view>

namespace millrace::sim {

// Zero: it ends as soon as it can. `bytes`: that it copies.
std::chrono::nanoseconds duration_of(std::string_view name, std::size_t bytes);

// Of this thread, which sleeps for what operations take: it wakes when it is time, and not some fifty microseconds later.
void wake_in_time();

}  // namespace millrace::sim
