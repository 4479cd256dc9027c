// What the cache's store on disk costs: opening one of many entries, finding, reading and writing. In a folder of the
// disk that is to be measured.
//
//   millrace_bench_store FOLDER [ENTRIES] [ROUNDS]
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "daemon/cache/disk/disk_store.h"
#include "tests/support/host/temp_folder.h"

namespace {

using namespace millrace;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kSmall = 2048, kLarge = 130 << 10, kLargeEntries = 4000;

template <class T>
T must(Result<T> result) {
  if (result) return *std::move(result);
  std::fprintf(stderr, "millrace_bench_store: %s\n", result.error().message.c_str());
  std::exit(1);
}

std::unique_ptr<DiskStore> open_store(const std::string& path) {
  return must(DiskStore::open({.folder = path, .most = 64_GiB, .seed = 1, .read_at = ::pread}));
}

CacheKey key_of_number(std::uint64_t number) {
  return key_of(FileIdentity{.inode = number}, 1);
}

// Of this process: what others do on the machine does not count.
double cpu_seconds_of(const std::function<void()>& work) {
  const auto now = [] {
    timespec time{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
  };
  const double began = now();
  work();
  return now() - began;
}

double seconds_of(const std::function<void()>& work) {
  const auto began = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - began).count();
}

void fill(DiskStore& store, std::uint64_t entries, std::size_t size, CachedKind kind, std::size_t at_once) {
  const std::vector<std::byte> bytes(size, std::byte{7});
  std::vector<DiskStore::Entry> some;
  for (std::uint64_t i = 0; i < entries; ++i) {
    some.push_back({key_of_number(i), kind, {}, bytes});
    if (some.size() < at_once && i + 1 < entries) continue;
    must(store.write(some));
    some.clear();
  }
}

void read_all(DiskStore& store, const std::vector<std::uint64_t>& order) {
  for (const std::uint64_t i : order) must(store.read(*store.find(key_of_number(i), CachedKind::kPacked)));
}

// What is the least: as many bytes, to memory as fresh, without opening, looking up and checking.
void read_bare(const std::string& path) {
  for (const auto& file : std::filesystem::directory_iterator(path)) {
    if (file.path().extension() != ".mrc") continue;
    const int fd = ::open(file.path().c_str(), O_RDONLY | O_CLOEXEC);
    for (off_t at = 0;; at += kLarge) {
      CachedBlock block(kLarge, CachedBlock::kPadding);
      if (::pread(fd, block.writable().data(), kLarge, at) <= 0) break;
    }
    ::close(fd);
  }
}

void drop_from_page_cache(const std::string& path) {
  ::sync();
  for (const auto& file : std::filesystem::directory_iterator(path)) {
    const int fd = ::open(file.path().c_str(), O_RDONLY | O_CLOEXEC);
    static_cast<void>(::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
    ::close(fd);
  }
}

void print(const char* figure, std::vector<double> values, const char* unit) {
  std::ranges::sort(values);
  std::printf("%-28s %10.4g (%.4g - %.4g) %s\n", figure, values[values.size() / 2], values.front(), values.back(),
              unit);
}

void measure_many_small(const std::string& folder, std::uint64_t entries, int rounds) {
  std::vector<double> opening, finding;
  const double filling = seconds_of([&] { fill(*open_store(folder), entries, kSmall, CachedKind::kIndex, 1024); });
  for (int i = 0; i < rounds; ++i) {
    std::unique_ptr<DiskStore> store;
    opening.push_back(cpu_seconds_of([&] { store = open_store(folder); }));
    const double all = cpu_seconds_of([&] {
      for (std::uint64_t k = 0; k < entries; ++k)
        static_cast<void>(store->find(key_of_number(k), CachedKind::kIndex)->length);
    });
    finding.push_back(all / static_cast<double>(entries) * 1e9);
  }
  print("store.write.small", {filling / static_cast<double>(entries) * 1e6}, "us an entry of 2 KiB, 1,024 at once");
  print("store.open", opening, "CPU-s");
  print("store.find", finding, "CPU-ns, in order of their numbers");
}

void measure_large(const std::string& folder, int rounds) {
  std::vector<double> writing, warm, bare, cold, cold_rate;
  std::vector<std::uint64_t> order(kLargeEntries);
  for (std::uint64_t i = 0; i < kLargeEntries; ++i) order[i] = i;
  std::mt19937_64 random(1);
  constexpr double kEntries = kLargeEntries;
  for (int i = 0; i < rounds; ++i) {
    const auto store = open_store(folder);
    store->drop_all();
    writing.push_back(kEntries * kLarge / 1e9 /
                      seconds_of([&] { fill(*store, kLargeEntries, kLarge, CachedKind::kPacked, 64); }));
    std::ranges::shuffle(order, random);
    read_all(*store, order);
    warm.push_back(cpu_seconds_of([&] { read_all(*store, order); }) / kEntries * 1e6);
    bare.push_back(cpu_seconds_of([&] { read_bare(folder); }) / kEntries * 1e6);
    drop_from_page_cache(folder);
    const double seconds = seconds_of([&] { read_all(*store, order); });
    cold.push_back(seconds / kEntries * 1e6);
    cold_rate.push_back(kEntries * kLarge / 1e9 / seconds);
  }
  print("store.write", writing, "GB/s of entries of 130 KiB, to the page cache");
  print("store.read", warm, "CPU-us an entry of 130 KiB, from the page cache");
  print("  pread() alone", bare, "CPU-us, of as many bytes to memory as fresh, one file open");
  print("store.read.cold", cold, "us the same, from the disk, one at a time");
  print("store.read.cold", cold_rate, "GB/s");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: millrace_bench_store FOLDER [ENTRIES] [ROUNDS]\n");
    return 2;
  }
  const std::uint64_t entries = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1'000'000;
  const int rounds = argc > 3 ? std::max(1, std::atoi(argv[3])) : 5;
  const TempFolder folder(argv[1]);
  measure_many_small(folder / "small", entries, rounds);
  measure_large(folder / "large", rounds);
  return 0;
}
