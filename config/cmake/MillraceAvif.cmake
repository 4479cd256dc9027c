# libavif's headers, as Debian has them (libavif-dev): for decoding AVIF where the library is, which is loaded at run time, and for tests.
#   MILLRACE_AVIF           AUTO, ON or OFF
#   MILLRACE_AVIF_PACKAGE   Debian's package of the library
#   MILLRACE_HAS_AVIF       whether there are the targets millrace_avif_headers, and millrace_avif for targets that link it
set(MILLRACE_AVIF AUTO CACHE STRING "Build what decodes AVIF: AUTO (where libavif-dev is), ON or OFF")
set_property(CACHE MILLRACE_AVIF PROPERTY STRINGS AUTO ON OFF)
set(MILLRACE_HAS_AVIF FALSE)
if(NOT MILLRACE_AVIF)
  return()
endif()

find_path(MILLRACE_AVIF_INCLUDE avif/avif.h)
find_library(MILLRACE_AVIF_LIBRARY avif)
if(NOT MILLRACE_AVIF_INCLUDE OR NOT MILLRACE_AVIF_LIBRARY)
  if(MILLRACE_AVIF STREQUAL "AUTO")
    message(STATUS "no libavif (libavif-dev): millrace is built without AVIF")
    return()
  endif()
  message(FATAL_ERROR "no libavif: install libavif-dev")
endif()

# The soname has the number of the interface that the headers describe.
file(REAL_PATH ${MILLRACE_AVIF_LIBRARY} library)
string(REGEX MATCH "libavif[.]so[.]([0-9]+)" soname ${library})
if(NOT soname)
  message(FATAL_ERROR "${library}: no soname to be seen; set MILLRACE_AVIF_LIBRARY to a shared library, or MILLRACE_AVIF to OFF")
endif()
set(MILLRACE_AVIF_PACKAGE libavif${CMAKE_MATCH_1})
add_library(millrace_avif_headers INTERFACE IMPORTED GLOBAL)
target_include_directories(millrace_avif_headers INTERFACE ${MILLRACE_AVIF_INCLUDE})
target_compile_definitions(millrace_avif_headers INTERFACE MILLRACE_AVIF_SONAME="${soname}" MILLRACE_AVIF_PACKAGE="${MILLRACE_AVIF_PACKAGE}")
add_library(millrace_avif INTERFACE IMPORTED GLOBAL)
target_link_libraries(millrace_avif INTERFACE millrace_avif_headers ${MILLRACE_AVIF_LIBRARY})
set(MILLRACE_HAS_AVIF TRUE)
