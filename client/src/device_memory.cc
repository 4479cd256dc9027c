#include "client/src/device_memory.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "proto/base/printable.h"
#include "proto/cuda/shared_memory.h"

namespace millrace {
inline namespace client {
namespace {

using cuda::CUresult;
using cuda::Driver;

constexpr const char* kElse = "open the session with its memory on the host";
constexpr const char* kOrElse = "or open the session with its memory on the host";

// Stands for the default stream, which every blocking stream waits for.
cuda::CUstream legacy_stream() {
  return reinterpret_cast<cuda::CUstream>(std::uintptr_t{1});
}

cuda::CUstream stream_of(void* handle) {
  return handle == nullptr ? legacy_stream() : static_cast<cuda::CUstream>(handle);
}

Error forked_child() {
  return Error{Code::kPrecondition,
               "this process was forked from one that used CUDA, which does not survive fork(); start it by exec()"};
}

// What the driver says of a call, in the words of a client.
Result<void> checked(const Driver& driver, CUresult result, const char* call) {
  if (result == cuda::CUDA_SUCCESS) return {};
  if (result == cuda::CUDA_ERROR_NOT_INITIALIZED) return forked_child();
  const std::string text = std::string("CUDA: ") + call + ": " + driver.name(result);
  if (result == cuda::CUDA_ERROR_OUT_OF_MEMORY)
    return Error{Code::kExhausted, text + ": the GPU has no memory left for this process; free some, " + kOrElse};
  if (result == cuda::CUDA_ERROR_INVALID_HANDLE)
    return Error{Code::kPrecondition, text + ": a stream that was given to used_by() was destroyed, or never was one"};
  return Error{Code::kPrecondition, text + "; if the GPU was lost, look at nvidia-smi and start this process anew"};
}

// Makes a context the thread's current one, until its end. Meanwhile a CUDA graph may be captured, here or in another
// thread, of streams that have nothing to do with it: else to ask for an event, or to unmap memory, would end that capture.
class CurrentContext {
 public:
  CurrentContext(const Driver& driver, cuda::CUcontext context) : driver_(driver) {
    made_ = checked(driver_, driver_.cuCtxGetCurrent(&before_), "cuCtxGetCurrent");
    if (made_) made_ = checked(driver_, driver_.cuCtxSetCurrent(context), "cuCtxSetCurrent");
    if (made_) static_cast<void>(driver_.cuThreadExchangeStreamCaptureMode(&capture_mode_));
  }
  ~CurrentContext() {
    if (!made_) return;
    static_cast<void>(driver_.cuThreadExchangeStreamCaptureMode(&capture_mode_));
    static_cast<void>(driver_.cuCtxSetCurrent(before_));
  }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

  const Result<void>& made() const { return made_; }

 private:
  const Driver& driver_;
  cuda::CUcontext before_ = nullptr;
  int capture_mode_ = cuda::CU_STREAM_CAPTURE_MODE_RELAXED;  // the thread's one before, once exchanged
  Result<void> made_;
};

}  // namespace

Result<VisibleGpu> VisibleGpu::find(const cuda::Uuid& uuid) {
  const Result<const Driver*> loaded = Driver::load();
  if (!loaded)
    return Error{Code::kUnsupported, "this process cannot use CUDA (" + loaded.error().message +
                                         "): install NVIDIA's driver, give the container its GPUs, " + kOrElse};
  const Driver& driver = **loaded;
  int count = 0;
  MILLRACE_TRY_VOID(checked(driver, driver.cuDeviceGetCount(&count), "cuDeviceGetCount"));
  std::string others;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    cuda::CUdevice device = 0;
    cuda::Uuid seen{};
    cuda::CUuuid raw{};
    MILLRACE_TRY_VOID(checked(driver, driver.cuDeviceGet(&device, ordinal), "cuDeviceGet"));
    MILLRACE_TRY_VOID(checked(driver, driver.cuDeviceGetUuid_v2(&raw, device), "cuDeviceGetUuid"));
    std::copy(std::begin(raw.bytes), std::end(raw.bytes), seen.begin());
    if (seen == uuid) {
      if (const Result<void> can = can_share_memory(driver, device); !can)
        return Error{can.error().code, can.error().message + ": " + kElse};
      return VisibleGpu(driver, uuid, device, ordinal);
    }
    others += (others.empty() ? "" : ", ") + cuda::uuid_text(seen);
  }
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return Error{Code::kUnsupported, "this process does not see " + cuda::uuid_text(uuid) +
                                       ", in whose memory the session's tensors would be, but " +
                                       (others.empty() ? "none" : others) + ": add it to $CUDA_VISIBLE_DEVICES (now " +
                                       (visible == nullptr ? "unset" : printable(visible)) +
                                       "), give it to the container, " + kOrElse};
}

Result<std::unique_ptr<DeviceMemory>> DeviceMemory::map(const VisibleGpu& gpu, const UniqueFd& descriptor, Bytes size) {
  std::unique_ptr<DeviceMemory> memory(new DeviceMemory(gpu, size));
  MILLRACE_TRY_VOID(memory->prepare(descriptor));
  return memory;
}

Result<void> DeviceMemory::prepare(const UniqueFd& descriptor) {
  const Driver& driver = gpu_.driver();
  MILLRACE_TRY_VOID(
      checked(driver, driver.cuDevicePrimaryCtxRetain(&context_, gpu_.device()), "cuDevicePrimaryCtxRetain"));
  const CurrentContext current(driver, context_);
  MILLRACE_TRY_VOID(current.made());
  MILLRACE_TRY(const std::size_t whole, shared_memory_size(driver, gpu_.device(), size_.count));
  const cuda::CUmemAccessDesc access{.location = cuda::shared_memory_of(gpu_.device()).location,
                                     .flags = cuda::CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  cuda::CUmemGenericAllocationHandle handle = 0;
  void* const number = reinterpret_cast<void*>(static_cast<std::uintptr_t>(descriptor.get()));
  MILLRACE_TRY_VOID(checked(
      driver, driver.cuMemImportFromShareableHandle(&handle, number, cuda::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
      "cuMemImportFromShareableHandle"));
  Result<void> mapped = checked(driver, driver.cuMemAddressReserve(&at_, whole, 0, 0, 0), "cuMemAddressReserve");
  if (mapped) {
    reserved_ = whole;
    mapped = checked(driver, driver.cuMemMap(at_, whole, 0, handle, 0), "cuMemMap");
  }
  static_cast<void>(driver.cuMemRelease(handle));  // the mapping keeps the memory
  MILLRACE_TRY_VOID(mapped);
  mapped_ = true;
  MILLRACE_TRY_VOID(checked(driver, driver.cuMemSetAccess(at_, whole, &access, 1), "cuMemSetAccess"));
  let_peers_in(whole);
  return {};
}

// This process's other GPUs, as far as they reach this one: their kernels may use the tensors, too.
void DeviceMemory::let_peers_in(std::size_t whole) const {
  const Driver& driver = gpu_.driver();
  int count = 0;
  if (driver.cuDeviceGetCount(&count) != cuda::CUDA_SUCCESS) return;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    cuda::CUdevice peer = 0;
    int can = 0;
    if (driver.cuDeviceGet(&peer, ordinal) != cuda::CUDA_SUCCESS || peer == gpu_.device()) continue;
    if (driver.cuDeviceCanAccessPeer(&can, peer, gpu_.device()) != cuda::CUDA_SUCCESS || can == 0) continue;
    const cuda::CUmemAccessDesc access{.location = cuda::shared_memory_of(peer).location,
                                       .flags = cuda::CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    static_cast<void>(driver.cuMemSetAccess(at_, whole, &access, 1));
  }
}

DeviceMemory::~DeviceMemory() {
  if (forked() || context_ == nullptr) return;
  const Driver& driver = gpu_.driver();
  {
    const CurrentContext current(driver, context_);
    MutexLock lock(mutex_);
    for (Release& release : waiting_) {
      for (const cuda::CUevent event : release.events) static_cast<void>(driver.cuEventSynchronize(event));
      destroy(release.events);
    }
    if (failure_) return;
    if (mapped_) static_cast<void>(driver.cuMemUnmap(at_, reserved_));
    if (reserved_ != 0) static_cast<void>(driver.cuMemAddressFree(at_, reserved_));
  }
  static_cast<void>(driver.cuDevicePrimaryCtxRelease_v2(gpu_.device()));
}

void DeviceMemory::release_after(std::span<void* const> streams, std::function<void()> release) {
  if (forked()) return;
  const CurrentContext current(gpu_.driver(), context_);
  Result<Events> events = current.made() ? record(streams) : Result<Events>(current.made().error());
  MutexLock lock(mutex_);
  if (events) {
    waiting_.push_back({*std::move(events), std::move(release)});
  } else if (!failure_) {
    failure_ = std::move(events).error().within("nobody can say whether a slot is in use on the GPU");
  }
}

bool DeviceMemory::look() {
  if (forked()) return false;
  std::vector<Release> due;  // called outside the lock
  bool is_some_left = false;
  {
    MutexLock lock(mutex_);
    if (waiting_.empty()) return false;
    const CurrentContext current(gpu_.driver(), context_);
    for (std::size_t i = 0; i < waiting_.size();) {
      const Result<bool> done = current.made() ? passed(waiting_[i].events) : Result<bool>(current.made().error());
      if (done && !*done) {
        ++i;
        continue;
      }
      if (done) due.push_back(std::move(waiting_[i]));
      if (!done && !failure_) failure_ = done.error().within("nobody can say whether a slot is in use on the GPU");
      destroy(waiting_[i].events);
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    is_some_left = !waiting_.empty();
  }
  for (const Release& release : due) release.call();
  return is_some_left;
}

std::optional<Error> DeviceMemory::failure() const {
  MutexLock lock(mutex_);
  return failure_;
}

Result<void> DeviceMemory::copy(std::uint64_t address, std::span<std::byte> to, std::span<void* const> after) const {
  if (forked()) return forked_child();
  if (to.empty()) return {};
  const Driver& driver = gpu_.driver();
  const CurrentContext current(driver, context_);
  MILLRACE_TRY_VOID(current.made());
  MILLRACE_TRY(Events events, record(after));
  cuda::CUstream stream = nullptr;
  Result<void> copied =
      checked(driver, driver.cuStreamCreateWithPriority(&stream, cuda::CU_STREAM_NON_BLOCKING, 0), "cuStreamCreate");
  for (const cuda::CUevent event : events) {
    if (copied) copied = checked(driver, driver.cuStreamWaitEvent(stream, event, 0), "cuStreamWaitEvent");
  }
  if (copied)
    copied = checked(driver, driver.cuMemcpyDtoHAsync_v2(to.data(), address, to.size(), stream), "cuMemcpyDtoHAsync");
  if (stream != nullptr) {
    const Result<void> done = checked(driver, driver.cuStreamSynchronize(stream), "cuStreamSynchronize");
    if (copied) copied = done;
    static_cast<void>(driver.cuStreamDestroy_v2(stream));
  }
  destroy(events);
  return copied;
}

Result<DeviceMemory::Events> DeviceMemory::record(std::span<void* const> streams) const {
  const Driver& driver = gpu_.driver();
  Events events;
  Result<void> recorded;
  for (void* const stream : streams) {
    cuda::CUevent event = nullptr;
    recorded = checked(driver, driver.cuEventCreate(&event, cuda::CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    if (recorded) {
      events.push_back(event);
      recorded = checked(driver, driver.cuEventRecord(event, stream_of(stream)), "cuEventRecord");
    }
    if (!recorded) break;
  }
  if (recorded) return events;
  destroy(events);
  return recorded.error();
}

Result<bool> DeviceMemory::passed(Events& events) const {
  const Driver& driver = gpu_.driver();
  while (!events.empty()) {
    const CUresult result = driver.cuEventQuery(events.back());
    if (result == cuda::CUDA_ERROR_NOT_READY) return false;
    MILLRACE_TRY_VOID(checked(driver, result, "cuEventQuery"));
    static_cast<void>(driver.cuEventDestroy_v2(events.back()));
    events.pop_back();
  }
  return true;
}

void DeviceMemory::destroy(Events& events) const {
  for (const cuda::CUevent event : events) static_cast<void>(gpu_.driver().cuEventDestroy_v2(event));
  events.clear();
}

}  // namespace client
}  // namespace millrace
