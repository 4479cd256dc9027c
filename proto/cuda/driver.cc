#include "proto/cuda/driver.h"

#include <dlfcn.h>

#include <string>
#include <utility>

namespace millrace::cuda {
namespace {

// What an operator can do, where NVIDIA's word for what cuInit() says is too little; empty: nothing is known.
std::string advice_on(CUresult result) {
  switch (result) {
    case CUDA_ERROR_NO_DEVICE:
      return ": no GPU is visible: see nvidia-smi -L, the device files and CUDA_VISIBLE_DEVICES";
    case CUDA_ERROR_SYSTEM_NOT_READY:
      return ": the host is not ready yet: where NVSwitch joins the GPUs, nvidia-fabricmanager has to run";
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
      return ": the driver's library and its kernel module are of two versions: reboot, or load the module anew";
    case CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
      return ": the libcuda of the package cuda-compat is not for this GPU: take it out of LD_LIBRARY_PATH";
    case CUDA_ERROR_OPERATING_SYSTEM:
    case CUDA_ERROR_UNKNOWN:
      return ": /dev/nvidia-uvm may be missing (nvidia-modprobe -c 0 -u), or closed to this process";
    default:
      return "";
  }
}

// What passes by itself, or by what an operator starts: another process may ask again.
bool may_pass(CUresult result) {
  return result == CUDA_ERROR_SYSTEM_NOT_READY || result == CUDA_ERROR_OPERATING_SYSTEM || result == CUDA_ERROR_UNKNOWN;
}

Error not_here(const std::string& why) {
  return Error{Code::kUnsupported, "NVIDIA's driver: " + why};
}

Result<void> fill(Driver& driver) {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);  // never closed: drivers do not survive it
  if (library == nullptr) {
    const char* const why = dlerror();
    return not_here(why == nullptr ? "libcuda.so.1 cannot be loaded" : why);
  }
#define MILLRACE_FUNCTION(symbol, parameters)                                        \
  driver.symbol = reinterpret_cast<CUresult(*) parameters>(dlsym(library, #symbol)); \
  if (driver.symbol == nullptr)                                                      \
    return not_here("it has no function " #symbol                                    \
                    "; install one of version 525 or "                               \
                    "newer");
  MILLRACE_CUDA_FUNCTIONS(MILLRACE_FUNCTION)
#undef MILLRACE_FUNCTION
  const CUresult begun = driver.cuInit(0);
  if (begun == CUDA_SUCCESS) return {};
  if (begun == CUDA_ERROR_STUB_LIBRARY)
    return not_here("libcuda.so.1 is the CUDA toolkit's stub, which is for linking; take it out of LD_LIBRARY_PATH");
  const Error why = not_here("cuInit: " + driver.name(begun) + advice_on(begun));
  return may_pass(begun) ? Error{Code::kUnavailable, why.message} : why;
}

}  // namespace

Result<const Driver*> Driver::load() {
  static Driver driver;
  static const Result<void> loaded = fill(driver);
  if (!loaded) return loaded.error();
  return static_cast<const Driver*>(&driver);
}

std::string Driver::name(CUresult result) const {
  const char* text = nullptr;
  const bool known = cuGetErrorName(result, &text) == CUDA_SUCCESS && text != nullptr;
  return std::string(known ? text : "unknown") + " (" + std::to_string(result) + ")";
}

Error Driver::failed(CUresult result, const char* call) const {
  const Code code = result == CUDA_ERROR_OUT_OF_MEMORY ? Code::kExhausted : Code::kUnavailable;
  std::string text = std::string(call) + ": " + name(result);
  if (result == CUDA_ERROR_DEVICE_UNAVAILABLE)
    text += ": another process has the GPU for itself; nvidia-smi -c DEFAULT lets both have it";
  return Error{code, std::move(text)};
}

}  // namespace millrace::cuda
