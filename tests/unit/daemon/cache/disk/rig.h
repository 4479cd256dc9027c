// What the tests of the store on disk share. Functions for one thread.
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/cache/disk/disk_store.h"
#include "tests/support/host/temp_folder.h"

namespace millrace {

constexpr std::uint64_t kStoreSeed = 77;

inline CacheKey numbered_key(std::uint64_t number) {
  return key_of(FileIdentity{.inode = number}, 7);
}

// Bytes that are told by key and size.
inline std::vector<std::byte> entry_bytes(std::uint64_t number, std::size_t size) {
  std::vector<std::byte> bytes(size);
  std::uint64_t state = number * 0x9E3779B97F4A7C15ULL + 1;
  for (std::byte& byte : bytes) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    byte = static_cast<std::byte>(state >> 56);
  }
  return bytes;
}

inline StoredFacts facts_of(std::uint64_t number) {
  StoredFacts facts;
  facts.info = {.format = ImageFormat::kPng,
                .stored = {640, static_cast<std::uint32_t>(number)},
                .orientation = 6,
                .codec = {5_MiB, 6_MiB},
                .has = {.alpha = true, .passes = true}};
  facts.contents = number;
  facts.tensor_of = number + 1;
  facts.dataset = 9;
  facts.sample = 4;
  facts.saves = 0.5F;
  facts.costs = 0.25F;
  return facts;
}

inline std::string store_in(const TempFolder& folder) {
  return folder / "cache";
}

inline std::unique_ptr<DiskStore> open_store(const std::string& path, Bytes most = 64_MiB, ReadAt read_at = ::pread) {
  auto opened = DiskStore::open({.folder = path, .most = most, .seed = kStoreSeed, .read_at = read_at});
  if (!opened) FAIL(opened.error().message);
  return *std::move(opened);
}

inline Result<std::uint64_t> write_entry(DiskStore& store, std::uint64_t number, std::size_t size,
                                         CachedKind kind = CachedKind::kPacked) {
  const std::vector<std::byte> bytes = entry_bytes(number, size);
  const DiskStore::Entry entry{numbered_key(number), kind, facts_of(number), bytes};
  return store.write({&entry, 1});
}

inline void put_entry(DiskStore& store, std::uint64_t number, std::size_t size, CachedKind kind = CachedKind::kPacked) {
  const auto written = write_entry(store, number, size, kind);
  if (!written) FAIL(written.error().message);
}

// Whether the entry is there and what was put; one that is there and another fails the test.
inline bool has_entry(DiskStore& store, std::uint64_t number, std::size_t size, CachedKind kind = CachedKind::kPacked) {
  const auto placed = store.find(numbered_key(number), kind);
  if (!placed) return false;
  const auto bytes = store.read(*placed);
  if (!bytes) return false;
  const std::vector<std::byte> expected = entry_bytes(number, size);
  if (placed->length != size || !std::ranges::equal((*bytes)->view(), expected)) FAIL("another entry's bytes");
  if (!(placed->facts == facts_of(number))) FAIL("another entry's facts");
  return true;
}

inline std::vector<std::string> files_of(const std::string& store, const std::string& suffix) {
  std::vector<std::string> files;
  for (const auto& file : std::filesystem::directory_iterator(store)) {
    if (file.path().string().ends_with(suffix)) files.push_back(file.path().string());
  }
  return files;
}

inline std::string contents_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline void write_contents(const std::string& path, const std::string& contents) {
  std::ofstream(path, std::ios::binary) << contents;
}

}  // namespace millrace
