// A stream of a consumer's on a GPU, which a test can hold: what is queued on it waits until it is opened.
#pragma once

#include <dlfcn.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "millrace/client.h"
#include "proto/cuda/driver.h"
#include "tests/system/support/need.h"

namespace millrace {

// Not thread-safe.
class HeldStream {
 public:
  using Words = std::vector<std::byte>;

  HeldStream() : driver_(*need(cuda::Driver::load())) {
    cuda::CUdevice device = -1;
    cuda::CUcontext context = nullptr;
    check(driver_.cuDeviceGet(&device, 0));
    check(driver_.cuDevicePrimaryCtxRetain(&context, device));
    check(driver_.cuCtxSetCurrent(context));
    check(driver_.cuStreamCreateWithPriority(&stream_, cuda::CU_STREAM_NON_BLOCKING, 0));
    check(driver_.cuMemHostRegister_v2(&page_, sizeof page_, 0));
  }
  ~HeldStream() {
    open();
    static_cast<void>(driver_.cuStreamSynchronize(stream_));
    static_cast<void>(driver_.cuMemHostUnregister(&page_));
  }

  void hold() {
    check(driver_.cuStreamWaitValue64_v2(stream_, reinterpret_cast<cuda::CUdeviceptr>(&page_), 1,
                                         cuda::CU_STREAM_WAIT_VALUE_GEQ));
  }
  void open() { page_.word = 1; }
  void fill(const DeviceBytes& bytes, unsigned char value) {
    check(driver_.cuMemsetD8Async(bytes.address, value, bytes.size.count, stream_));
  }
  Words read(const DeviceBytes& bytes) {
    Words host(bytes.size.count);
    check(driver_.cuMemcpyDtoHAsync_v2(host.data(), bytes.address, host.size(), stream_));
    check(driver_.cuStreamSynchronize(stream_));
    return host;
  }
  // In this thread, globally: what others call that a capture forbids ends it.
  void begin_capture() { check(by_name<cuda::CUresult(cuda::CUstream, int)>("cuStreamBeginCapture_v2")(stream_, 0)); }
  cuda::CUresult end_capture() {
    void* graph = nullptr;
    return by_name<cuda::CUresult(cuda::CUstream, void**)>("cuStreamEndCapture")(stream_, &graph);
  }
  void destroy() { check(driver_.cuStreamDestroy_v2(std::exchange(stream_, nullptr))); }
  void* handle() const { return stream_; }
  bool is_mapped(std::uint64_t address) const {
    cuda::CUdeviceptr begin = 0;
    std::size_t size = 0;
    return driver_.cuMemGetAddressRange_v2(&begin, &size, address) == cuda::CUDA_SUCCESS;
  }

 private:
  template <class Function>
  static Function* by_name(const char* name) {  // what the project itself does not call
    void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    return reinterpret_cast<Function*>(::dlsym(library, name));
  }
  void check(cuda::CUresult result) const { need(driver_.checked(result, "a consumer's call")); }

  const cuda::Driver& driver_;
  cuda::CUstream stream_ = nullptr;
  struct alignas(4096) Page {  // memory is registered by whole pages, and each once
    std::atomic<std::uint64_t> word = 0;
  } page_;
};

}  // namespace millrace
