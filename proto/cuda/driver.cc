#include "proto/cuda/driver.h"

#include <dlfcn.h>

namespace millrace::cuda {
namespace {

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
  return not_here("cuInit: " + driver.name(begun));
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
  return Error{code, std::string(call) + ": " + name(result)};
}

}  // namespace millrace::cuda
