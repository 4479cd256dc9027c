// A part of a test in a child process that may take only so much more memory. Not for builds with sanitizers, which map
// memory of their own as they like.
#pragma once

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>

namespace millrace {

// Takes whatever the allocator can still give out without growing, but for the few small blocks of an error's message.
inline void swallow_free_memory() {
  void* messages[32];
  for (void*& block : messages) block = std::malloc(128);
  for (std::size_t size = std::size_t{64} << 20; size >= 256; size /= 2) {
    while (std::malloc(size) != nullptr) continue;
  }
  for (void* block : messages) std::free(block);
}

// What `part` returns, 0 to 99, in a child that may allocate so many bytes; -1: the child was ended, by an exception,
// say.
template <class Part>
int with_limited_memory(std::size_t bytes, Part part) {
  const pid_t child = fork();
  if (child == 0) {
    unsigned long pages = 0;
    std::FILE* const file = std::fopen("/proc/self/statm", "r");
    const bool known = file != nullptr && std::fscanf(file, "%lu", &pages) == 1;
    if (file != nullptr) std::fclose(file);
    const rlim_t taken = pages * static_cast<unsigned long>(sysconf(_SC_PAGESIZE)), limit = taken + bytes;
    const rlimit none{taken, limit}, room{limit, limit}, no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    if (!known || setrlimit(RLIMIT_AS, &none) != 0) _exit(100);
    swallow_free_memory();
    if (setrlimit(RLIMIT_AS, &room) != 0) _exit(100);
    _exit([&]() noexcept { return part(); }());  // nothing of the parent's catches what it throws
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

}  // namespace millrace
