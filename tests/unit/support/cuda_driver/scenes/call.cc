// What calls answer: contexts, ranges, events, words, threads.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <thread>

#include "tests/unit/support/cuda_driver/scenes/scenes.h"

namespace millrace::cuda_scenes {
namespace {

constexpr std::size_t kBytes = 10'000;

int contexts(Arguments) {
  const Gpu gpu;
  const Driver& cu = gpu.cu;
  int none = 0;
  std::size_t free_bytes = 0, total = 0;
  say("no context", cu.cuCtxSetCurrent(reinterpret_cast<CUcontext>(&none)));
  need(cu.cuDevicePrimaryCtxRelease_v2(gpu.device), "cuDevicePrimaryCtxRelease");
  say("after the release", cu.cuMemGetInfo_v2(&free_bytes, &total));
  say("released twice", cu.cuDevicePrimaryCtxRelease_v2(gpu.device));
  say("made current", cu.cuCtxSetCurrent(gpu.context));
  say("none current", cu.cuCtxSetCurrent(nullptr));
  return 0;
}

int ranges(Arguments) {
  const Gpu gpu;
  const Driver& cu = gpu.cu;
  CUdeviceptr begin = 0;
  std::size_t size = 0;
  const CUdeviceptr allocated = gpu.memory(kBytes);
  say("range", cu.cuMemGetAddressRange_v2(&begin, &size, allocated + kBytes - 1));
  std::printf("%s, %zu bytes\n", begin == allocated ? "its beginning" : "another", size);
  say("range behind", cu.cuMemGetAddressRange_v2(&begin, &size, allocated + kBytes));
  say("free within", cu.cuMemFree_v2(allocated + 256));
  return 0;
}

int events(Arguments) {
  const Gpu gpu;
  const Driver& cu = gpu.cu;
  const CUstream stream = gpu.stream();
  CUevent first = nullptr, last = nullptr;
  need(cu.cuEventCreate(&first, CU_EVENT_BLOCKING_SYNC), "cuEventCreate");
  need(cu.cuEventCreate(&last, CU_EVENT_BLOCKING_SYNC), "cuEventCreate");
  const CUevent untimed = gpu.event();
  float milliseconds = -1;
  say("query of what was not recorded", cu.cuEventQuery(first));
  say("elapsed before", cu.cuEventElapsedTime(&milliseconds, first, last));
  Gate gate(gpu);
  need(cu.cuEventRecord(first, stream), "cuEventRecord");
  need(cu.cuEventSynchronize(first), "cuEventSynchronize");
  gate.hold(stream);
  need(cu.cuEventRecord(last, stream), "cuEventRecord");
  say("stream held up", cu.cuStreamQuery(stream));
  say("event held up", cu.cuEventQuery(last));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  gate.open();
  need(cu.cuEventSynchronize(last), "cuEventSynchronize");
  say("event", cu.cuEventQuery(last));
  say("elapsed", cu.cuEventElapsedTime(&milliseconds, first, last));
  std::printf("%s\n", milliseconds >= 20 && milliseconds < 20'000 ? "as long as it took" : "another time");
  say("untimed", cu.cuEventElapsedTime(&milliseconds, untimed, last));
  return 0;
}

// A call with a handle that was destroyed, by the call's name.
int use_destroyed(Arguments arguments) {
  const Gpu gpu;
  const Driver& cu = gpu.cu;
  const CUstream stream = gpu.stream(), other = gpu.stream();
  const CUevent event = gpu.event(), last = gpu.event();
  need(cu.cuStreamDestroy_v2(stream), "cuStreamDestroy");
  need(cu.cuEventDestroy_v2(event), "cuEventDestroy");
  gpu.stream();  // has neither's handle
  gpu.event();
  int none = 0;
  const std::pair<std::string_view, std::function<CUresult()>> calls[] = {
      {"cuStreamSynchronize", [&] { return cu.cuStreamSynchronize(stream); }},
      {"cuStreamDestroy", [&] { return cu.cuStreamDestroy_v2(stream); }},
      {"cuEventRecord to it", [&] { return cu.cuEventRecord(last, stream); }},
      {"cuEventRecord", [&] { return cu.cuEventRecord(event, other); }},
      {"cuEventQuery", [&] { return cu.cuEventQuery(event); }},
      {"cuEventDestroy", [&] { return cu.cuEventDestroy_v2(event); }},
      {"cuStreamWaitEvent", [&] { return cu.cuStreamWaitEvent(other, event, 0); }},
      {"cuStreamQuery of none", [&] { return cu.cuStreamQuery(reinterpret_cast<CUstream>(&none)); }},
      {"cuEventQuery of none", [&] { return cu.cuEventQuery(reinterpret_cast<CUevent>(&none)); }},
  };
  for (const auto& [name, call] : calls)
    if (name == arguments[0]) say("answers", call());
  return 0;
}

// Words in device memory; GEQ is cyclic.
int words(Arguments) {
  const Gpu gpu;
  const Driver& cu = gpu.cu;
  const CUstream waiter = gpu.stream(), writer = gpu.stream();
  const CUdeviceptr word = gpu.memory(8);
  need(cu.cuStreamWriteValue64_v2(writer, word, ~std::uint64_t{4}, 0), "write");
  gpu.synchronise(writer);
  need(cu.cuStreamWaitValue64_v2(waiter, word, 3, CU_STREAM_WAIT_VALUE_GEQ), "wait");
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  say("waits", cu.cuStreamQuery(waiter));
  need(cu.cuStreamWriteValue64_v2(writer, word, 4, 0), "write");
  say("waited", cu.cuStreamSynchronize(waiter));
  say("odd address", cu.cuStreamWriteValue64_v2(writer, word + 4, 0, 0));
  std::uint64_t unregistered = 0;
  say("to unregistered memory", cu.cuStreamWriteValue64_v2(writer, reinterpret_cast<CUdeviceptr>(&unregistered), 1, 0));
  say("synchronise", cu.cuStreamSynchronize(writer));
  return 0;
}

int refusals(Arguments) {
  const Gpu gpu;
  const Driver& cu = gpu.cu;
  const CUstream stream = gpu.stream();
  const CUfunction function = gpu.function("millrace_tokenise");
  CUstream made = nullptr;
  std::byte parameter[1024] = {};
  void* parameters[] = {parameter};
  const auto launch = [&](CUstream to, unsigned blocks, unsigned threads, unsigned shared) {
    return cu.cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, shared, to, parameters, nullptr);
  };
  say("blocking stream", cu.cuStreamCreateWithPriority(&made, 0, 0));
  say("default stream", launch(nullptr, 1, 32, 0));
  say("no blocks", launch(stream, 0, 32, 0));
  say("too many threads", launch(stream, 1, 1056, 0));
  say("too much shared memory", launch(stream, 1, 32, (48 << 10) + 1));
  say("more than there is",
      cu.cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 228 << 10));
  const CUdeviceptr memory = gpu.memory(kBytes);
  say("device memory as host memory", cu.cuMemcpyHtoDAsync_v2(memory, reinterpret_cast<void*>(memory), 1, stream));
  return 0;
}

// Each thread with a stream of its own, all of them at once.
int threads(Arguments) {
  const Gpu gpu;
  const Driver& cu = gpu.cu;
  std::atomic<int> equal = 0;
  const auto work = [&](unsigned char seed) {
    need(cu.cuCtxSetCurrent(gpu.context), "cuCtxSetCurrent");
    Pinned<unsigned char> from(gpu, kBytes), to(gpu, kBytes);
    for (int round = 0; round < 20; ++round) {
      const CUstream stream = gpu.stream();
      const CUevent event = gpu.event();
      const CUdeviceptr memory = gpu.memory(kBytes);
      for (std::size_t i = 0; i < kBytes; ++i)
        from[i] = static_cast<unsigned char>(i * seed + static_cast<unsigned>(round));
      need(cu.cuMemcpyHtoDAsync_v2(memory, from.data(), kBytes, stream), "HtoD");
      need(cu.cuMemcpyDtoHAsync_v2(to.data(), memory, kBytes, stream), "DtoH");
      need(cu.cuEventRecord(event, stream), "cuEventRecord");
      need(cu.cuEventSynchronize(event), "cuEventSynchronize");
      equal += from.values() == to.values() ? 1 : 0;
      need(cu.cuMemFree_v2(memory), "cuMemFree");
      need(cu.cuEventDestroy_v2(event), "cuEventDestroy");
      need(cu.cuStreamDestroy_v2(stream), "cuStreamDestroy");
    }
  };
  std::vector<std::thread> workers;
  for (unsigned char seed = 1; seed <= 4; ++seed) workers.emplace_back(work, seed);
  for (std::thread& worker : workers) worker.join();
  std::printf("%d equal\n", equal.load());
  return 0;
}

constexpr Scene kCallScenes[] = {
    {"contexts", contexts}, {"ranges", ranges},     {"events", events},   {"use destroyed", use_destroyed},
    {"words", words},       {"refusals", refusals}, {"threads", threads},
};

}  // namespace

std::span<const Scene> call_scenes() {
  return kCallScenes;
}

}  // namespace millrace::cuda_scenes
