# What `cmake --install` gives: headers, libmillrace, a CMake package and a pkg-config file. An installed header has the shared vocabulary
# of proto/base beside it as millrace/base/: the same files with that one path rewritten.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(staged ${CMAKE_CURRENT_BINARY_DIR}/installed_headers/millrace)
function(millrace_stage_header from to)
  file(READ ${from} text)
  string(REPLACE "\"proto/base/" "\"millrace/base/" text "${text}")
  file(CONFIGURE OUTPUT ${to} CONTENT "${text}" @ONLY)  # rewrites the file only when it differs
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${from})
endfunction()
foreach(header ${public_headers})
  get_filename_component(name ${header} NAME)
  millrace_stage_header(${header} ${staged}/${name})
endforeach()
foreach(name batch_choices bytes error recipe result skipped_files steps why_unpacked)
  millrace_stage_header(${PROJECT_SOURCE_DIR}/proto/base/${name}.h ${staged}/base/${name}.h)
endforeach()

# One library file: ours, the vocabulary (shown), and the messages (hidden in a shared one, along with everything from gRPC).
add_library(libmillrace $<TARGET_OBJECTS:millrace_client> $<TARGET_OBJECTS:millrace_cuda_api>
  $<TARGET_OBJECTS:millrace_base>)
if(BUILD_SHARED_LIBS)
  target_link_libraries(libmillrace PRIVATE $<BUILD_INTERFACE:millrace_rpc> Threads::Threads)
  target_link_options(libmillrace PRIVATE -Wl,--exclude-libs,ALL)
  if(NOT MILLRACE_SANITIZE)  # a sanitizer's run time comes with the program, not with the library
    target_link_options(libmillrace PRIVATE -Wl,--no-undefined)
  endif()
else()
  find_package(Protobuf REQUIRED)
  find_package(PkgConfig REQUIRED)
  pkg_check_modules(GRPCPP REQUIRED IMPORTED_TARGET grpc++)
  target_sources(libmillrace PRIVATE $<TARGET_OBJECTS:millrace_messages> $<TARGET_OBJECTS:millrace_rpc>)
  target_link_libraries(libmillrace PUBLIC Threads::Threads PkgConfig::GRPCPP protobuf::libprotobuf)
endif()
set_target_properties(libmillrace PROPERTIES OUTPUT_NAME millrace EXPORT_NAME Millrace LINKER_LANGUAGE CXX
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
target_compile_features(libmillrace INTERFACE cxx_std_20)
target_include_directories(libmillrace INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

install(TARGETS libmillrace EXPORT MillraceTargets
  LIBRARY COMPONENT library NAMELINK_COMPONENT development
  ARCHIVE COMPONENT development)
install(DIRECTORY ${staged} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Millrace)
configure_package_config_file(cmake/MillraceConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/MillraceConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/MillraceConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(EXPORT MillraceTargets NAMESPACE Millrace:: DESTINATION ${package_dir} COMPONENT development)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/MillraceConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/MillraceConfigVersion.cmake
  DESTINATION ${package_dir} COMPONENT development)

if(BUILD_SHARED_LIBS)
  set(pc_requires "")
else()
  set(pc_requires "Requires: grpc++ protobuf")
endif()
file(RELATIVE_PATH pc_prefix /p/${CMAKE_INSTALL_LIBDIR}/pkgconfig /p)  # so that the file may move with its tree
configure_file(cmake/millrace.pc.in ${CMAKE_CURRENT_BINARY_DIR}/millrace.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/millrace.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
