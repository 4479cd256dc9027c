// What the benchmark uses of nvJPEG, found at run time: so it compiles without nvJPEG's headers, and runs without its
// library. Names and values are those of nvjpeg.h 13.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace millrace::kernels::cuda::bench {

// nvjpegImage_t.
struct NvjpegImage {
  unsigned char* channel[4];
  std::size_t pitch[4];
};

// nvjpegBackend_t.
enum class NvjpegBackend : int { kGpuHybrid = 2, kHardware = 3 };

struct NvjpegLibrary {
  using Handle = void*;
  static constexpr int kInterleavedRgb = 5;  // NVJPEG_OUTPUT_RGBI

  int (*create)(int backend, void* device_allocator, void* pinned_allocator, unsigned flags, Handle* handle);
  int (*destroy)(Handle handle);
  int (*create_state)(Handle handle, Handle* state);
  int (*destroy_state)(Handle state);
  int (*begin_batched)(Handle handle, Handle state, int batch, int most_cpu_threads, int output_format);
  int (*decode_batched)(Handle handle, Handle state, const unsigned char* const* data, const std::size_t* bytes,
                        NvjpegImage* images, cudaStream_t stream);
  int (*create_stream)(Handle handle, Handle* stream);
  int (*destroy_stream)(Handle stream);
  int (*parse_stream)(Handle handle, const unsigned char* data, std::size_t bytes, int save_metadata, int save_stream,
                      Handle stream);
  // *supported: 0 where nvjpegDecodeBatched takes such images.
  int (*batched_supported)(Handle handle, Handle stream, int* supported);
};

// nullptr: `why`. The library stays loaded. $NVJPEG_LIBRARY, then libnvjpeg.so.13 and .so.12 where the loader looks.
const NvjpegLibrary* load_nvjpeg(std::string& why);

}  // namespace millrace::kernels::cuda::bench
