#include "tests/support/host/live_bytes.h"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::size_t> live = 0;

void* counted(void* memory) {
  if (memory != nullptr) live += malloc_usable_size(memory);
  return memory;
}

void* counted_or_throw(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  return counted(memory);
}

void* take(std::size_t bytes) {
  return std::malloc(bytes == 0 ? 1 : bytes);
}

void* take(std::size_t bytes, std::align_val_t alignment) {
  const auto to = static_cast<std::size_t>(alignment);
  return std::aligned_alloc(to, (bytes + to) / to * to);
}

void give_back(void* memory) {
  if (memory != nullptr) live -= malloc_usable_size(memory);
  std::free(memory);
}

}  // namespace

std::size_t live_bytes() {
  return live;
}

void* operator new(std::size_t bytes) {
  return counted_or_throw(take(bytes));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted_or_throw(take(bytes, alignment));
}
// Those of a sanitizer do not call the ones above, as the standard library's do.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return counted(take(bytes));
}
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return counted(take(bytes, alignment));
}
void operator delete(void* memory) noexcept {
  give_back(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  give_back(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  give_back(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  give_back(memory);
}
