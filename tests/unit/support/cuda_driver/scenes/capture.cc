// A stream that is captured, and what others call meanwhile.
#include <dlfcn.h>

#include <cstdio>
#include <functional>
#include <string>
#include <thread>

#include "tests/unit/support/cuda_driver/scenes/scenes.h"

namespace millrace::cuda_scenes {
namespace {

constexpr std::size_t kCapturedBytes = 5000;

// Functions that the project itself does not call.
template <class... Parameters>
CUresult call_by_name(const char* name, Parameters... parameters) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  auto* const function = reinterpret_cast<CUresult (*)(Parameters...)>(dlsym(library, name));
  return function == nullptr ? CUDA_ERROR_NOT_FOUND : function(parameters...);
}

int number(std::string_view text) {
  return std::stoi(std::string(text));
}

struct Captured {
  explicit Captured(const Gpu& of)
      : gpu(of),
        stream(gpu.stream()),
        other(gpu.stream()),
        before(gpu.event()),
        within(gpu.event()),
        memory(gpu.memory(kCapturedBytes)) {
    need(gpu.cu.cuEventRecord(before, other), "cuEventRecord");
    gpu.synchronise(other);
  }
  void begin(int mode) const { need(call_by_name("cuStreamBeginCapture_v2", stream, mode), "cuStreamBeginCapture"); }
  void end() const {
    void* graph = nullptr;
    say("end", call_by_name("cuStreamEndCapture", stream, &graph));
  }

  const Gpu& gpu;
  CUstream stream, other;
  CUevent before, within;
  CUdeviceptr memory;
};

CUresult call_of(const Captured& captured, std::string_view name, Pinned<unsigned char>& pinned) {
  const Driver& cu = captured.gpu.cu;
  CUdeviceptr more = 0;
  CUmodule module = nullptr;
  const std::pair<std::string_view, std::function<CUresult()>> calls[] = {
      {"cuMemAlloc", [&] { return cu.cuMemAlloc_v2(&more, 1); }},
      {"cuMemFree", [&] { return cu.cuMemFree_v2(captured.memory); }},
      {"cuMemHostUnregister", [&] { return cu.cuMemHostUnregister(pinned.data()); }},
      {"cuModuleLoadData", [&] { return cu.cuModuleLoadData(&module, "millrace simulated image"); }},
      {"cuEventQuery", [&] { return cu.cuEventQuery(captured.before); }},
      {"cuEventQuery within", [&] { return cu.cuEventQuery(captured.within); }},
      {"cuStreamSynchronize of it", [&] { return cu.cuStreamSynchronize(captured.stream); }},
      {"cuStreamSynchronize", [&] { return cu.cuStreamSynchronize(captured.other); }},
      {"cuStreamWaitEvent of it", [&] { return cu.cuStreamWaitEvent(captured.stream, captured.before, 0); }},
      {"cuEventRecord", [&] { return cu.cuEventRecord(captured.before, captured.other); }},
  };
  for (const auto& [known, call] : calls)
    if (known == name) return call();
  return CUDA_ERROR_NOT_FOUND;
}

// A capture's mode, a thread's (here | there) and its mode, and what it calls.
int capture(Arguments arguments) {
  const Gpu gpu;
  const Captured captured(gpu);
  Pinned<unsigned char> pinned(gpu, 1);
  captured.begin(number(arguments[0]));
  need(gpu.cu.cuEventRecord(captured.within, captured.stream), "cuEventRecord");
  const auto call = [&] {
    int mode = number(arguments[2]);
    need(gpu.cu.cuCtxSetCurrent(gpu.context), "cuCtxSetCurrent");
    need(gpu.cu.cuThreadExchangeStreamCaptureMode(&mode), "cuThreadExchangeStreamCaptureMode");
    say("call", call_of(captured, arguments[3], pinned));
    need(gpu.cu.cuThreadExchangeStreamCaptureMode(&mode), "cuThreadExchangeStreamCaptureMode");
  };
  if (arguments[1] == "here") {
    call();
  } else {
    std::thread(call).join();
  }
  captured.end();
  return 0;
}

// What a capture is given is not done; one that was ended before its end takes no more.
int captured_work(Arguments) {
  const Gpu gpu;
  const Captured captured(gpu);
  Pinned<unsigned char> byte(gpu, 1);
  const auto clear = [&] { return gpu.cu.cuMemsetD8Async(captured.memory, 0, 1, captured.stream); };
  captured.begin(0);
  say("memset", clear());
  std::thread([&] {
    need(gpu.cu.cuCtxSetCurrent(gpu.context), "cuCtxSetCurrent");
    captured.end();
  }).join();
  captured.end();
  captured.end();
  need(gpu.cu.cuMemcpyDtoHAsync_v2(byte.data(), captured.memory, 1, captured.stream), "DtoH");
  gpu.synchronise(captured.stream);
  std::printf("0x%x\n", byte[0]);
  captured.begin(0);
  say("synchronise", gpu.cu.cuStreamSynchronize(captured.stream));
  say("memset", clear());
  captured.end();
  say("memset", clear());
  say("synchronise", gpu.cu.cuStreamSynchronize(captured.stream));
  return 0;
}

constexpr Scene kCaptureScenes[] = {{"capture", capture}, {"captured work", captured_work}};

}  // namespace

std::span<const Scene> capture_scenes() {
  return kCaptureScenes;
}

}  // namespace millrace::cuda_scenes
