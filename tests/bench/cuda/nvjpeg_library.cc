#include "tests/bench/cuda/nvjpeg_library.h"

#include <dlfcn.h>

#include <cstdlib>

namespace millrace::kernels::cuda::bench {
namespace {

void* open_library(std::string& why) {
  const char* const given = std::getenv("NVJPEG_LIBRARY");
  for (const char* const name : {given, "libnvjpeg.so.13", "libnvjpeg.so.12"}) {
    if (name == nullptr) continue;
    if (void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
    why += why.empty() ? "" : "; ";
    why += dlerror();
  }
  return nullptr;
}

template <class Function>
bool find(void* library, const char* name, Function& function, std::string& why) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) why = std::string("the library lacks ") + name;
  return function != nullptr;
}

}  // namespace

const NvjpegLibrary* load_nvjpeg(std::string& why) {
  static NvjpegLibrary loaded;
  void* const library = open_library(why);
  if (library == nullptr) return nullptr;
  const bool complete = find(library, "nvjpegCreateEx", loaded.create, why) &&
                        find(library, "nvjpegDestroy", loaded.destroy, why) &&
                        find(library, "nvjpegJpegStateCreate", loaded.create_state, why) &&
                        find(library, "nvjpegJpegStateDestroy", loaded.destroy_state, why) &&
                        find(library, "nvjpegDecodeBatchedInitialize", loaded.begin_batched, why) &&
                        find(library, "nvjpegDecodeBatched", loaded.decode_batched, why) &&
                        find(library, "nvjpegJpegStreamCreate", loaded.create_stream, why) &&
                        find(library, "nvjpegJpegStreamDestroy", loaded.destroy_stream, why) &&
                        find(library, "nvjpegJpegStreamParse", loaded.parse_stream, why) &&
                        find(library, "nvjpegDecodeBatchedSupported", loaded.batched_supported, why);
  return complete ? &loaded : nullptr;
}

}  // namespace millrace::kernels::cuda::bench
