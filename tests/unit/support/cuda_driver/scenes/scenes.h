// What processes of their own do with the simulated driver, for tests that look at them from outside: what the driver
// is to do is read from the environment once a process. A scene prints what it sees, a line each, and returns the exit
// status.
#pragma once

#include <cstddef>
#include <new>
#include <span>
#include <string_view>
#include <vector>

#include "proto/cuda/driver.h"

namespace millrace::cuda_scenes {

using namespace cuda;

using Arguments = std::span<const std::string_view>;

struct Scene {
  std::string_view name;
  int (*run)(Arguments arguments);
};
std::span<const Scene> call_scenes();
std::span<const Scene> registering_scenes();
std::span<const Scene> capture_scenes();
std::span<const Scene> image_scenes();
std::span<const Scene> launch_scenes();
std::span<const Scene> memory_scenes();
std::span<const Scene> device_scenes();
std::span<const Scene> ending_scenes();
std::span<const Scene> fault_scenes();
std::span<const Scene> sharing_scenes();
std::span<const Scene> batch_scenes();

// Ends the process, unless the call was fine.
void need(CUresult result, const char* call);
void say(const char* what, CUresult result);  // "what: 700"

// The driver, and device 0's primary context, current in this thread. Ends the process where there is none.
class Gpu {
 public:
  Gpu();

  const Driver& cu;
  CUdevice device = -1;
  CUcontext context = nullptr;

  CUstream stream() const;
  CUevent event() const;
  CUdeviceptr memory(std::size_t bytes) const;
  CUfunction function(const char* name) const;
  void synchronise(CUstream stream) const { need(cu.cuStreamSynchronize(stream), "cuStreamSynchronize"); }

 private:
  static const Driver& load();
};

// Allocates pages that nothing else lies in: they are registered whole.
template <class T>
struct WholePages {
  using value_type = T;
  WholePages() = default;
  template <class U>
  WholePages(const WholePages<U>&) {}  // NOLINT(google-explicit-constructor): as allocators do
  T* allocate(std::size_t count) {
    const std::size_t bytes = (count * sizeof(T) + kPageBytes - 1) / kPageBytes * kPageBytes;
    return static_cast<T*>(::operator new(bytes, kAligned));
  }
  void deallocate(T* at, std::size_t) { ::operator delete(at, kAligned); }
  bool operator==(const WholePages&) const = default;

 private:
  static constexpr std::size_t kPageBytes = 4096;
  static constexpr std::align_val_t kAligned{kPageBytes};
};

// Registered memory of the host.
template <class T>
class Pinned {
 public:
  using Values = std::vector<T, WholePages<T>>;

  Pinned(const Gpu& gpu, std::size_t count) : cu_(gpu.cu), values_(count) {
    need(cu_.cuMemHostRegister_v2(values_.data(), bytes(), CU_MEMHOSTREGISTER_PORTABLE), "cuMemHostRegister");
  }
  ~Pinned() { cu_.cuMemHostUnregister(values_.data()); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

  T* data() { return values_.data(); }
  std::size_t bytes() const { return values_.size() * sizeof(T); }
  T& operator[](std::size_t i) { return values_[i]; }
  Values& values() { return values_; }

 private:
  const Driver& cu_;
  Values values_;
};

// Holds a stream up until it is opened.
class Gate {
 public:
  explicit Gate(const Gpu& gpu) : gpu_(gpu), word_(gpu, 1) {}
  void hold(CUstream stream);
  void open();

 private:
  const Gpu& gpu_;
  Pinned<std::uint64_t> word_;
};

}  // namespace millrace::cuda_scenes
