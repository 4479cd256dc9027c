// A store to a file through a mapping, which changes no size and no time at once. For tests.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <string>

namespace millrace {

// Another bit early in the scan's data, through a shared mapping: other DC levels from there on.
inline void store_through_mapping(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(fd >= 0);
  const auto size = static_cast<std::size_t>(std::filesystem::file_size(path));
  void* const mapping = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  REQUIRE(mapping != MAP_FAILED);
  auto* const bytes = static_cast<unsigned char*>(mapping);
  const auto* const sos = static_cast<unsigned char*>(memmem(bytes, size, "\xFF\xDA\x00\x0C", 4));
  if (sos != nullptr) bytes[sos - bytes + 14] ^= 0x08;
  munmap(mapping, size);
}

}  // namespace millrace
