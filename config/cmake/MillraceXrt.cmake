# XRT, the Xilinx runtime, as Debian has it (libxrt-dev): for the program that drives FPGAs, and for tests with simulated cards.
#   MILLRACE_XRT            AUTO, ON or OFF
#   MILLRACE_HAS_XRT        whether there is the target millrace_xrt: XRT's C++ interface
#   MILLRACE_HAS_XRT_CARDS  whether cards can be simulated (hls/card): what Debian's package has beside the interface, of a known version
set(MILLRACE_XRT AUTO CACHE STRING "Build what drives FPGAs: AUTO (where libxrt-dev is), ON or OFF")
set_property(CACHE MILLRACE_XRT PROPERTY STRINGS AUTO ON OFF)
set(MILLRACE_HAS_XRT FALSE)
set(MILLRACE_HAS_XRT_CARDS FALSE)
if(NOT MILLRACE_XRT)
  return()
endif()

find_path(MILLRACE_XRT_INCLUDE xrt/xrt_device.h PATHS /usr/include/xrt /opt/xilinx/xrt/include NO_DEFAULT_PATH)
find_library(MILLRACE_XRT_COREUTIL xrt_coreutil PATHS /opt/xilinx/xrt/lib)
find_library(MILLRACE_UUID uuid)
find_path(MILLRACE_UUID_INCLUDE uuid/uuid.h)
if(NOT MILLRACE_XRT_INCLUDE OR NOT MILLRACE_XRT_COREUTIL OR NOT MILLRACE_UUID OR NOT MILLRACE_UUID_INCLUDE)
  if(MILLRACE_XRT STREQUAL "AUTO")
    message(STATUS "no XRT (libxrt-dev, uuid-dev): millrace is built without FPGAs")
    return()
  endif()
  message(FATAL_ERROR "no XRT: install libxrt-dev and uuid-dev")
endif()

# Not xrt_core, which is the driver: xrt_coreutil opens $XILINX_XRT/lib/libxrt_core.so.2, unless the program has one already.
add_library(millrace_xrt INTERFACE IMPORTED GLOBAL)
target_include_directories(millrace_xrt INTERFACE ${MILLRACE_XRT_INCLUDE} ${MILLRACE_UUID_INCLUDE})
target_link_libraries(millrace_xrt INTERFACE ${MILLRACE_XRT_COREUTIL} ${MILLRACE_UUID})
set(MILLRACE_HAS_XRT TRUE)

# The simulated cards take objects out of an archive, which another version's may not have.
set(known_version 2.13.466)
find_library(MILLRACE_XRT_SWEMU NAMES libxrt_swemu.a)
execute_process(COMMAND dpkg-query -W -f "\${Version}" libxrt-dev OUTPUT_VARIABLE version ERROR_QUIET RESULT_VARIABLE ignored)
if(MILLRACE_XRT_SWEMU AND version MATCHES "[.]2[.]13[.]466[+]dfsg")
  set(MILLRACE_HAS_XRT_CARDS TRUE)
else()
  message(STATUS "XRT without libxrt_swemu.a of Debian's ${known_version}: tests are built without simulated FPGA cards")
endif()
