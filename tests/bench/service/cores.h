// Which cores a process computes on, and how long it did. Thread-safe.
#pragma once

#include <sys/types.h>

#include <string_view>
#include <vector>

namespace millrace::bench {

// Processors that this thread may use, one of each core, `most` at the most.
std::vector<int> separate_cores(std::size_t most);

// Confines all threads of a process, and those that they will make, to some processors. Ends the program with a message
// when the kernel refuses.
void confine(pid_t process, const std::vector<int>& processors);

// Processor time of a process so far: all its threads, user and kernel. Seconds.
double processor_seconds(pid_t process);

// The same of those of its threads whose names begin so; but a thread bears its maker's name until it has one of its
// own, so of those named as the process's first thread only that one counts. Ends the program with a message when there
// is none.
double thread_seconds(pid_t process, std::string_view name);

}  // namespace millrace::bench
