// Copies, pinned memory, order, and what is done wrong with them.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "kernels/cuda/tokenise/tokenise.h"
#include "tests/unit/support/cuda_driver/scenes/scenes.h"

namespace millrace::cuda_scenes {
namespace {

constexpr std::size_t kMemoryBytes = 100'000;  // no multiple of a page

int round_trip(Arguments) {
  const Gpu gpu;
  const Driver& cu = gpu.cu;
  const CUstream stream = gpu.stream();
  const CUdeviceptr first = gpu.memory(kMemoryBytes), second = gpu.memory(kMemoryBytes), fresh = gpu.memory(1);
  Pinned<unsigned char> from(gpu, kMemoryBytes), to(gpu, kMemoryBytes), one(gpu, 1);
  for (std::size_t i = 0; i < kMemoryBytes; ++i) from[i] = static_cast<unsigned char>(i * 7 + i / 251);

  need(cu.cuMemcpyHtoDAsync_v2(first, from.data(), kMemoryBytes, stream), "HtoD");
  need(cu.cuMemcpyDtoDAsync_v2(second, first, kMemoryBytes, stream), "DtoD");
  need(cu.cuMemsetD8Async(second + 1000, 0x5A, 10, stream), "memset");
  need(cu.cuMemcpyDtoHAsync_v2(to.data(), second, kMemoryBytes, stream), "DtoH");
  need(cu.cuMemcpyDtoHAsync_v2(one.data(), fresh, 1, stream), "DtoH");
  gpu.synchronise(stream);

  std::fill_n(from.data() + 1000, 10, 0x5A);
  std::printf("%s, fresh memory holds 0x%x\n", from.values() == to.values() ? "equal" : "different", one[0]);
  return 0;
}

int dereference(Arguments) {
  const Gpu gpu;
  const CUdeviceptr at = gpu.memory(kMemoryBytes);
  std::printf("0x%llx\n", at + 5);
  std::fflush(stdout);
  const int value = *reinterpret_cast<volatile const char*>(at + 5);
  std::printf("read %d\n", value);
  return 0;
}

int early_reuse(Arguments) {
  const Gpu gpu;
  const Driver& cu = gpu.cu;
  const CUstream stream = gpu.stream();
  const CUdeviceptr memory = gpu.memory(kMemoryBytes);
  Pinned<unsigned char> from(gpu, kMemoryBytes), to(gpu, kMemoryBytes);
  std::vector<unsigned char> unregistered(kMemoryBytes, 1);
  const auto copied = [&](void* source, auto change) {
    Gate gate(gpu);
    gate.hold(stream);
    need(cu.cuMemcpyHtoDAsync_v2(memory, source, kMemoryBytes, stream), "HtoD");
    need(cu.cuMemcpyDtoHAsync_v2(to.data(), memory, kMemoryBytes, stream), "DtoH");
    const int early = to[0];
    change();
    gate.open();
    gpu.synchronise(stream);
    std::printf("%d, 0x%x before\n", to[0], early);
  };
  std::ranges::fill(from.values(), 1);
  copied(from.data(), [&] { std::ranges::fill(from.values(), 2); });
  copied(unregistered.data(), [&] { std::ranges::fill(unregistered, 2); });
  return 0;
}

// Memory that a stream, held up for a moment, has yet to use is freed (`memset`, `kernel`: used by that) or unregistered
// (`copy`).
int let_go_early(Arguments arguments) {
  const std::string_view user = arguments[0];
  const Gpu gpu;
  const Driver& cu = gpu.cu;
  const CUstream stream = gpu.stream();
  const CUevent used = gpu.event();
  const CUdeviceptr memory = gpu.memory(kMemoryBytes);
  Pinned<unsigned char> from(gpu, kMemoryBytes);
  Gate gate(gpu);
  gate.hold(stream);
  if (user == "memset") need(cu.cuMemsetD8Async(memory, 1, kMemoryBytes, stream), "memset");
  if (user == "copy") need(cu.cuMemcpyHtoDAsync_v2(memory, from.data(), kMemoryBytes, stream), "HtoD");
  if (user == "kernel") {
    const CUfunction function = gpu.function("millrace_tokenise");
    kernels::cuda::TokeniseArgs args{};
    args.statuses = reinterpret_cast<kernels::cuda::Status*>(memory + 100);
    void* parameters[] = {&args};
    need(cu.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, sizeof(kernels::cuda::TokeniseShared), stream, parameters,
                           nullptr),
         "launch");
  }
  need(cu.cuEventRecord(used, stream), "cuEventRecord");
  std::thread opening([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    gate.open();
  });
  const CUresult result = user == "copy" ? cu.cuMemHostUnregister(from.data()) : cu.cuMemFree_v2(memory);
  say("let go", result);
  opening.join();
  say("synchronise", cu.cuStreamSynchronize(stream));
  return 0;
}

// Two streams' results to the same memory, which is registered anew between.
int registered_anew(Arguments) {
  const Gpu gpu;
  std::vector<unsigned char, WholePages<unsigned char>> to(kMemoryBytes);
  const CUdeviceptr memory = gpu.memory(kMemoryBytes);
  for (int i = 0; i < 2; ++i) {
    need(gpu.cu.cuMemHostRegister_v2(to.data(), kMemoryBytes, 0), "cuMemHostRegister");
    need(gpu.cu.cuMemcpyDtoHAsync_v2(to.data(), memory, kMemoryBytes, gpu.stream()), "DtoH");
    need(gpu.cu.cuMemHostUnregister(to.data()), "cuMemHostUnregister");
    std::printf("0x%x\n", to.back());
  }
  return 0;
}

int use_after_free(Arguments) {
  const Gpu gpu;
  const CUstream stream = gpu.stream();
  const CUdeviceptr memory = gpu.memory(kMemoryBytes);
  need(gpu.cu.cuMemFree_v2(memory), "cuMemFree");
  say("memset", gpu.cu.cuMemsetD8Async(memory, 0, 1, stream));
  say("synchronise", gpu.cu.cuStreamSynchronize(stream));
  CUdeviceptr more = 0;
  say("alloc", gpu.cu.cuMemAlloc_v2(&more, 1));
  return 0;
}

int overrun(Arguments) {
  const Gpu gpu;
  const CUstream stream = gpu.stream();
  const CUdeviceptr memory = gpu.memory(kMemoryBytes);
  say("copy", gpu.cu.cuMemcpyDtoDAsync_v2(memory, memory + 1, kMemoryBytes, stream));
  say("synchronise", gpu.cu.cuStreamSynchronize(stream));
  return 0;
}

// A kernel that writes more statuses than there is room for.
int kernel_overrun(Arguments) {
  using namespace kernels::cuda;
  const Gpu gpu;
  const CUstream stream = gpu.stream();
  const CUfunction function = gpu.function("millrace_tokenise");
  need(gpu.cu.cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, sizeof(TokeniseShared)),
       "cuFuncSetAttribute");
  const CUdeviceptr memory = gpu.memory(kMemoryBytes);
  need(gpu.cu.cuMemsetD8Async(memory, 0, kMemoryBytes, stream), "memset");
  for (std::size_t i = 0; i < kMemoryBytes / sizeof(ImageJob); ++i)  // files, of which all but the first have no status
    need(gpu.cu.cuMemsetD8Async(memory + i * sizeof(ImageJob) + offsetof(ImageJob, byte_count), 1, 1, stream),
         "memset");
  TokeniseArgs args{.jobs = reinterpret_cast<const ImageJob*>(memory),
                    .images = kMemoryBytes / sizeof(ImageJob),
                    .bytes = reinterpret_cast<const std::uint8_t*>(memory),
                    .tables = reinterpret_cast<const DecodeTable*>(memory),
                    .segments = reinterpret_cast<const Segment*>(memory),
                    .tokens = reinterpret_cast<Token*>(memory),
                    .blocks = reinterpret_cast<BlockEntry*>(memory),
                    .statuses = reinterpret_cast<Status*>(memory + kMemoryBytes - sizeof(Status)),
                    .work = nullptr,
                    .next_image = reinterpret_cast<std::uint32_t*>(memory),
                    .scratch = reinterpret_cast<unsigned char*>(memory),
                    .shape = {}};
  void* parameters[] = {&args};
  say("launch", gpu.cu.cuLaunchKernel(function, 1, 1, 1, kUsualTokeniseThreads, 1, 1, sizeof(TokeniseShared), stream,
                                      parameters, nullptr));
  args = {};  // was copied by the call
  say("synchronise", gpu.cu.cuStreamSynchronize(stream));
  return 0;
}

// One stream writes and reads, another reads: `event`, `host`, `function`: what orders them; else nothing.
int two_streams(Arguments arguments) {
  const std::string_view order = arguments.empty() ? "" : arguments[0];
  const Gpu gpu;
  const Driver& cu = gpu.cu;
  const CUstream first = gpu.stream(), second = gpu.stream();
  const CUdeviceptr memory = gpu.memory(kMemoryBytes);
  Pinned<unsigned char> from(gpu, kMemoryBytes), to(gpu, kMemoryBytes), again(gpu, kMemoryBytes);
  const CUevent written = gpu.event();
  need(cu.cuMemcpyHtoDAsync_v2(memory, from.data(), kMemoryBytes, first), "HtoD");
  need(cu.cuMemcpyDtoHAsync_v2(again.data(), memory, kMemoryBytes, first), "DtoH");
  need(cu.cuEventRecord(written, first), "cuEventRecord");
  if (order == "event") need(cu.cuStreamWaitEvent(second, written, 0), "cuStreamWaitEvent");
  if (order == "host") need(cu.cuEventSynchronize(written), "cuEventSynchronize");
  if (order == "function") {
    std::atomic<bool> called = false;
    need(cu.cuLaunchHostFunc(
             first, [](void* at) { *static_cast<std::atomic<bool>*>(at) = true; }, &called),
         "cuLaunchHostFunc");
    while (!called) std::this_thread::yield();
  }
  need(cu.cuMemcpyDtoHAsync_v2(to.data(), memory, kMemoryBytes, second), "DtoH");
  gpu.synchronise(first);
  gpu.synchronise(second);
  std::printf("done\n");
  return 0;
}

// Two streams' results to the same registered memory.
int same_target(Arguments) {
  const Gpu gpu;
  Pinned<unsigned char> to(gpu, kMemoryBytes);
  const CUdeviceptr memory = gpu.memory(kMemoryBytes);
  const CUstream first = gpu.stream(), second = gpu.stream();
  for (const CUstream stream : {first, second})
    need(gpu.cu.cuMemcpyDtoHAsync_v2(to.data(), memory, kMemoryBytes, stream), "DtoH");
  gpu.synchronise(first);
  gpu.synchronise(second);
  return 0;
}

int call_from_host_function(Arguments) {
  static const Gpu gpu;
  static CUresult result = CUDA_SUCCESS;
  const CUstream stream = gpu.stream();
  const auto call = [](void*) {
    CUcontext context = nullptr;
    result = gpu.cu.cuCtxGetCurrent(&context);
  };
  need(gpu.cu.cuLaunchHostFunc(stream, call, nullptr), "cuLaunchHostFunc");
  gpu.synchronise(stream);
  say("within", result);
  return 0;
}

// Made before the driver is loaded, so destroyed after it has ended: nothing of the driver works then.
struct LastWord {
  std::atomic<bool> destroyed = false;
  ~LastWord() {
    destroyed = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  static void speak(void* self) {
    if (static_cast<LastWord*>(self)->destroyed) std::fputs("a host function after the end\n", stderr);
  }
};

// Ends while streams still work, one of them destroyed.
int leave(Arguments) {
  static LastWord last_word;
  static std::vector<unsigned char> buffer(kMemoryBytes);
  const Gpu gpu;
  need(gpu.cu.cuMemHostRegister_v2(buffer.data(), kMemoryBytes, 0), "cuMemHostRegister");
  for (int i = 0; i < 2; ++i) {
    const CUstream stream = gpu.stream();
    const CUdeviceptr memory = gpu.memory(kMemoryBytes);
    for (int k = 0; k < 1000; ++k) {
      need(gpu.cu.cuMemcpyHtoDAsync_v2(memory, buffer.data(), kMemoryBytes, stream), "HtoD");
      need(gpu.cu.cuLaunchHostFunc(stream, LastWord::speak, &last_word), "cuLaunchHostFunc");
    }
    if (i == 1) need(gpu.cu.cuStreamDestroy_v2(stream), "cuStreamDestroy");
  }
  return 0;
}

int exit_in_host_function(Arguments) {
  const Gpu gpu;
  const CUstream stream = gpu.stream();
  need(gpu.cu.cuLaunchHostFunc(
           stream, [](void*) { std::exit(7); }, nullptr),
       "cuLaunchHostFunc");
  for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
}

int use_after_fork(Arguments) {
  const Gpu gpu;
  const CUstream stream = gpu.stream();
  const pid_t child = fork();
  if (child == 0) {
    say("in the child", gpu.cu.cuStreamSynchronize(stream));
    std::exit(5);
  }
  int status = 0;
  need(waitpid(child, &status, 0) == child ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN, "waitpid");
  say("its exit", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
  return 0;
}

constexpr Scene kMemoryScenes[] = {
    {"round trip", round_trip},
    {"dereference", dereference},
    {"early reuse", early_reuse},
    {"let go early", let_go_early},
    {"registered anew", registered_anew},
    {"use after free", use_after_free},
    {"overrun", overrun},
    {"kernel overrun", kernel_overrun},
    {"two streams", two_streams},
    {"same target", same_target},
    {"call from host function", call_from_host_function},
    {"leave", leave},
    {"exit in host function", exit_in_host_function},
    {"use after fork", use_after_fork},
};

}  // namespace

std::span<const Scene> memory_scenes() {
  return kMemoryScenes;
}

}  // namespace millrace::cuda_scenes
