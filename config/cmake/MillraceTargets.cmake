# Compiler settings for the whole tree, and the three ways to make a target. Every target is warning-free; includes start at the root.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1 -DNDEBUG")
string(COMPARE EQUAL "${CMAKE_BUILD_TYPE}" Release MILLRACE_AS_RELEASED)  # ThreadSanitizer's build sets it in folders that it compiles as release does

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  # Precompiled headers need the last three; a launcher line keeps them out of the user's own ccache configuration.
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE_PROGRAM})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()

include(CheckLinkerFlag)
check_linker_flag(CXX -fuse-ld=mold MILLRACE_HAS_MOLD)  # a third of the usual linker's time, for 300 programs and libraries
if(MILLRACE_HAS_MOLD)
  add_link_options($<$<NOT:$<LINK_LANGUAGE:CUDA>>:-fuse-ld=mold>)
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ looks for garbage once it has 1 GiB, and not at 128 MiB: a tenth to half of an object's time, for a quarter more memory.
  add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:--param=ggc-min-heapsize=1048576>)
endif()
get_directory_property(MILLRACE_OPTIONS_OF_RELEASE COMPILE_OPTIONS)  # all that come without sanitizers

set(MILLRACE_SANITIZE "" CACHE STRING "Sanitizers of the whole build: empty, `address,undefined` or `thread`")
if(MILLRACE_SANITIZE)
  add_compile_options(-fsanitize=${MILLRACE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${MILLRACE_SANITIZE})
  if(MILLRACE_SANITIZE MATCHES "address.*undefined")
    # AddressSanitizer finds what the first three look for, where it does harm; they are a third of the compiler's time. Alignment is a tenth, and
    # looked at in what computes or reads bytes of strangers: see millrace_computes().
    add_compile_options(-fno-sanitize=object-size,null,vptr,alignment)
  endif()
  if(MILLRACE_SANITIZE STREQUAL "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-Wno-tsan)  # Boost.Asio has fences, which g++'s ThreadSanitizer says that it does not follow
  endif()
endif()

add_library(millrace_options INTERFACE)
target_include_directories(millrace_options INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/generated)
target_compile_options(millrace_options INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Werror)
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  target_compile_options(millrace_options INTERFACE -Wthread-safety)
else()
  # g++ 12 sees uses of uninitialised or freed memory where there are none, once std::variant and std::optional are inlined.
  target_compile_options(millrace_options INTERFACE -Wno-maybe-uninitialized -Wno-missing-field-initializers
                         -Wno-stringop-overflow -Wno-array-bounds -Wno-restrict
                         -Wno-subobject-linkage)  # it takes a source that is compiled together with others for a header
endif()
target_compile_options(millrace_options INTERFACE -Wno-missing-field-initializers)

find_package(Threads REQUIRED)

# millrace_library(NAME SOURCES... DEPENDS...): a static library of ours.
function(millrace_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE millrace_options PUBLIC ${ARG_DEPENDS})
  target_include_directories(${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/generated>)
endfunction()

# millrace_program(NAME SOURCES... DEPENDS...): an executable of ours, placed in bin/.
function(millrace_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE millrace_options ${ARG_DEPENDS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
endfunction()

# millrace_is_tested(RESULT UNDER): whether this build has tests that are for the sanitizer UNDER: `address`, `thread`, `none`, or empty for both.
# A build without sanitizers has all tests. tests/README.md says which test is for which, and why.
function(millrace_is_tested result under)
  if(NOT under MATCHES "^(|address|thread|none)$")
    message(FATAL_ERROR "UNDER is address, thread or none, not ${under}")
  endif()
  if(NOT MILLRACE_SANITIZE OR under STREQUAL "" OR MILLRACE_SANITIZE MATCHES "${under}")
    set(${result} ON PARENT_SCOPE)
  else()
    set(${result} OFF PARENT_SCOPE)
  endif()
endfunction()

# millrace_computes([NAME]): under sanitizers, the target's sources are optimised; without NAME those of all targets in this folder and below.
# The preset clang optimises these and what fuzz targets link, and nothing else: an object takes half the time without.
function(millrace_computes)
  set(options -O1)
  if(MILLRACE_SANITIZE MATCHES undefined)
    list(APPEND options -fsanitize=alignment)
  endif()
  if(MILLRACE_SANITIZE AND ARGC EQUAL 1)
    target_compile_options(${ARGV0} PRIVATE ${options})
  elseif(MILLRACE_SANITIZE)
    add_compile_options(${options})
  endif()
endfunction()

# millrace_unwatched_by_tsan(): the sources of this folder and below are compiled as in the release build, of which ccache has the objects. For
# code that shares nothing between threads, and for programs that are not under test. Their own reads and writes go unseen; locks and the C
# library's functions are seen as everywhere. MILLRACE_TSAN_SEES_ALL, which the long run sets, has them instrumented.
macro(millrace_unwatched_by_tsan)
  if(MILLRACE_SANITIZE STREQUAL "thread" AND NOT MILLRACE_TSAN_SEES_ALL)
    set_property(DIRECTORY PROPERTY COMPILE_OPTIONS "${MILLRACE_OPTIONS_OF_RELEASE}")
    set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "${CMAKE_CXX_FLAGS_RELEASE}")
    set(CMAKE_UNITY_BUILD_BATCH_SIZE 8)
    set(MILLRACE_AS_RELEASED ON)
  endif()
endmacro()
option(MILLRACE_TSAN_SEES_ALL "ThreadSanitizer watches what shares nothing between threads, too" OFF)

# millrace_hardly_computes(NAME): the target's own sources are compiled quickly: see millrace_test.
function(millrace_hardly_computes name)
  target_compile_options(${name} PRIVATE -O0)
  if(MILLRACE_AS_RELEASED)
    target_compile_options(${name} PRIVATE -g0)  # a check that fails names its line without; a sanitizer's report would not
  endif()
  if(MILLRACE_SANITIZE MATCHES undefined)
    target_compile_options(${name} PRIVATE -fno-sanitize=undefined)
  endif()
  if(MILLRACE_SANITIZE MATCHES address AND CMAKE_CXX_COMPILER_ID MATCHES Clang)
    # The test's own frames go unwatched, its heap does not: a fifth of the compiler's time.
    target_compile_options(${name} PRIVATE -fno-sanitize-address-use-after-scope "SHELL:-mllvm -asan-stack=0")
  endif()
endfunction()

# millrace_test_program(NAME [FOLDER folder] SOURCES... [DEPENDS...] [NEEDS targets...] [HEADERS target] [OPTIMISED]): a Catch2 program. Sources
# without a folder lie in FOLDER. NEEDS are programs that it starts. A test's own sources are compiled several at once. Unless they compute much
# themselves, they are compiled without optimisation and without UndefinedBehaviorSanitizer: half the time, and a third less again. What is under
# test keeps both, but for functions in headers (tests/README.md). They begin with the precompiled headers of HEADERS: millrace_test_headers,
# unless another target is named.
function(millrace_test_program name)
  cmake_parse_arguments(ARG "OPTIMISED" "FOLDER;HEADERS" "SOURCES;DEPENDS;NEEDS" ${ARGN})
  if(ARG_FOLDER)
    list(TRANSFORM ARG_SOURCES PREPEND ${ARG_FOLDER}/ REGEX "^[^/]+$")
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE millrace_options Catch2::Catch2WithMain millrace_test_skip ${ARG_DEPENDS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  if(NOT ARG_OPTIMISED)
    millrace_hardly_computes(${name})
    if(NOT ARG_HEADERS)
      set(ARG_HEADERS millrace_test_headers)
    endif()
    target_precompile_headers(${name} REUSE_FROM ${ARG_HEADERS})
  else()
    millrace_computes(${name})
    if(MILLRACE_AS_RELEASED)
      target_compile_options(${name} PRIVATE -O1 -g0)  # two thirds of the compiler's time; what is under test keeps its own options
    endif()
  endif()
  if(ARG_NEEDS)
    add_dependencies(${name} ${ARG_NEEDS})
  endif()
endfunction()

# millrace_run_by_ctest(NAME PROGRAM program [ARGUMENTS...] [LABELS...] [COST seconds] [TIMEOUT seconds] [ENVIRONMENT...]): a test of ctest. COST is
# roughly what it takes where that is over ten seconds: ctest starts the longest first. TIMEOUT ends a test that hangs: a loaded machine takes
# many times the usual time.
function(millrace_run_by_ctest name)
  cmake_parse_arguments(ARG "" "PROGRAM;TIMEOUT;COST" "ARGUMENTS;LABELS;ENVIRONMENT" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 900)
  endif()
  if(NOT ARG_COST)
    set(ARG_COST 1)
  endif()
  add_test(NAME ${name} COMMAND ${ARG_PROGRAM} ${ARG_ARGUMENTS})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT} COST ${ARG_COST} REQUIRED_FILES $<TARGET_FILE:${ARG_PROGRAM}>
    ENVIRONMENT "${ARG_ENVIRONMENT}")
endfunction()

# millrace_test(NAME [FOLDER folder] SOURCES... [DEPENDS...] [LABELS...] [NEEDS targets...] [UNDER sanitizer] [COST seconds] [TIMEOUT seconds]
# [HEADERS target] [OPTIMISED]): a Catch2 program that ctest runs as one test of its name.
function(millrace_test name)
  cmake_parse_arguments(ARG "OPTIMISED" "FOLDER;TIMEOUT;COST;UNDER;HEADERS" "SOURCES;DEPENDS;LABELS;NEEDS" ${ARGN})
  millrace_is_tested(is_tested "${ARG_UNDER}")
  if(NOT is_tested)
    return()
  endif()
  set(how "")
  if(ARG_OPTIMISED)
    set(how OPTIMISED)
  endif()
  millrace_test_program(${name} FOLDER "${ARG_FOLDER}" HEADERS "${ARG_HEADERS}" ${how} SOURCES ${ARG_SOURCES} DEPENDS ${ARG_DEPENDS} NEEDS ${ARG_NEEDS})
  millrace_run_by_ctest(${name} PROGRAM ${name} COST "${ARG_COST}" TIMEOUT "${ARG_TIMEOUT}" LABELS ${ARG_LABELS} ENVIRONMENT ${MILLRACE_TEST_ENVIRONMENT})
endfunction()
set(MILLRACE_TEST_ENVIRONMENT "MILLRACE_BIN_DIR=${PROJECT_BINARY_DIR}/bin;MILLRACE_TESTS_DIR=${PROJECT_BINARY_DIR}/tests;XDG_STATE_HOME=/dev/null")
