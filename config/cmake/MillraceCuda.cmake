# The language CUDA and how .cu files that use its runtime are compiled: for the benchmark (tests/bench/cuda) alone.
if(MILLRACE_SANITIZE)
  message(FATAL_ERROR "MILLRACE_CUDA and MILLRACE_SANITIZE exclude each other: the benchmark is for figures")
endif()
if(NOT MILLRACE_NVCC)
  message(FATAL_ERROR "MILLRACE_CUDA needs the GPU kernels: MILLRACE_GPU_KERNELS=ON")
endif()
if(NOT CMAKE_CUDA_COMPILER)
  set(CMAKE_CUDA_COMPILER ${MILLRACE_NVCC})
endif()
# The data-centre GPUs from Ampere on; what comes after Blackwell compiles sm_100's PTX when it first runs.
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90-real 100)
endif()
if(CCACHE_PROGRAM AND NOT DEFINED CMAKE_CUDA_COMPILER_LAUNCHER)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()
enable_language(CUDA)
set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)  # which CMake 3.25 does not know
set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
set(CMAKE_CUDA_FLAGS_RELEASE "-O3 -DNDEBUG")

# millrace_cuda_options: of every target with .cu files. No fused multiply-add: weights are those of the CPU, bit by bit.
add_library(millrace_cuda_options INTERFACE)
target_include_directories(millrace_cuda_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(millrace_cuda_options INTERFACE
  $<$<COMPILE_LANGUAGE:CUDA>:-lineinfo -fmad=false --Werror=all-warnings -Xcompiler=-Wall,-Wextra,-Wshadow,-Wno-missing-field-initializers,-Wno-unknown-pragmas>
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow -Werror -Wno-missing-field-initializers>)
