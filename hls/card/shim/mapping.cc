#include "hls/card/shim/mapping.h"

#include <sys/mman.h>

namespace millrace::card {

std::unique_ptr<Mapping> Mapping::make(const char* name, std::uint64_t bytes) {
  Descriptor file(memfd_create(name, MFD_CLOEXEC));
  if (!file || ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) return nullptr;
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file.get(), 0);
  if (at == MAP_FAILED) return nullptr;
  return std::make_unique<Mapping>(std::move(file), static_cast<std::byte*>(at), bytes);
}

Mapping::~Mapping() {
  munmap(at_, bytes_);
}

void Mapping::forget(std::uint64_t offset, std::uint64_t bytes) const {
  madvise(at_ + offset, bytes, MADV_REMOVE);
}

}  // namespace millrace::card
