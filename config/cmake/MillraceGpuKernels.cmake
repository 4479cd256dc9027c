# The CUDA compiler, and the GPU kernels by it: a fat binary that the daemon embeds and NVIDIA's driver loads at run time. No language CUDA, no
# CUDA library: every build has them where a compiler is, whatever its own compiler and sanitizers are.
#   MILLRACE_GPU_KERNELS  AUTO, ON or OFF
#   MILLRACE_NVCC         $CUDACXX, the PATH's, /usr/local/cuda's, or that of NVIDIA's PyPI wheels, which `config/setup.sh deps --cuda` puts
#                         into build/venv-cuda; false where none is of version 13 or newer
set(MILLRACE_GPU_KERNELS AUTO CACHE STRING "Build the CUDA kernels: AUTO (where a compiler of version 13 or newer is), ON or OFF")
set_property(CACHE MILLRACE_GPU_KERNELS PROPERTY STRINGS AUTO ON OFF)

function(millrace_is_cuda_13 result nvcc)
  execute_process(COMMAND ${nvcc} --version OUTPUT_VARIABLE said ERROR_QUIET)
  if(NOT said MATCHES "release ([0-9]+)" OR CMAKE_MATCH_1 LESS 13)
    set(${result} FALSE PARENT_SCOPE)
  endif()
endfunction()

if(NOT MILLRACE_GPU_KERNELS)
  set(MILLRACE_NVCC FALSE)  # whatever an earlier run found
else()
  get_filename_component(named "$ENV{CUDACXX}" NAME)
  get_filename_component(named_folder "$ENV{CUDACXX}" DIRECTORY)
  file(GLOB wheels ${PROJECT_SOURCE_DIR}/build/venv-cuda/lib/python3*/site-packages/nvidia/cu13/bin)
  find_program(MILLRACE_NVCC NAMES ${named} nvcc HINTS ${named_folder} PATHS /usr/local/cuda/bin ${wheels} VALIDATOR millrace_is_cuda_13
               DOC "CUDA compiler, 13 or newer")
  if(NOT MILLRACE_NVCC AND MILLRACE_GPU_KERNELS STREQUAL "AUTO")
    message(STATUS "no CUDA compiler (13 or newer): millrace is built without GPU kernels")
  elseif(NOT MILLRACE_NVCC)
    message(FATAL_ERROR "no nvcc of version 13 or newer: install a CUDA toolkit, or NVIDIA's wheels with: config/setup.sh deps --cuda")
  endif()
endif()

# millrace_gpu_image(OUTPUT SOURCE): how SOURCE becomes the fat binary OUTPUT. For the data-centre GPUs from Ampere on; what comes after
# Blackwell compiles sm_100's PTX when it first runs. No fused multiply-add: weights are those of the CPU, bit by bit. No line numbers: they
# would make the file three times as large and name the build's folders.
function(millrace_gpu_image output source)
  get_filename_component(name ${output} NAME)
  if(MILLRACE_SANITIZE)  # which no GPU runs: its daemons meet the simulated driver, which takes PTX for a GPU of any kind
    set(for_gpus -gencode arch=compute_80,code=compute_80)
  else()
    set(for_gpus -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90 -gencode arch=compute_100,code=[sm_100,compute_100])
  endif()
  add_custom_command(OUTPUT ${output}
    COMMAND ${MILLRACE_NVCC} -fatbin -std=c++20 -O3 -DNDEBUG -fmad=false -Werror=all-warnings -I${PROJECT_SOURCE_DIR}
            ${for_gpus} --threads 2 -MD -MF ${output}.d -MT ${output} -o ${output} ${source}
    DEPENDS ${source} ${MILLRACE_NVCC} DEPFILE ${output}.d COMMENT "Compiling GPU kernels ${name}" VERBATIM)
endfunction()
