# libde265's headers, as Debian has them (libde265-dev): for decoding HEIC where the library is, which is loaded at run time.
#   MILLRACE_HEIC           AUTO, ON or OFF
#   MILLRACE_HEIC_PACKAGE   Debian's package of the library
#   MILLRACE_HAS_HEIC       whether there is the target millrace_de265_headers
set(MILLRACE_HEIC AUTO CACHE STRING "Build what decodes HEIC: AUTO (where libde265-dev is), ON or OFF")
set_property(CACHE MILLRACE_HEIC PROPERTY STRINGS AUTO ON OFF)
set(MILLRACE_HAS_HEIC FALSE)
if(NOT MILLRACE_HEIC)
  return()
endif()

find_path(MILLRACE_DE265_INCLUDE libde265/de265.h)
find_library(MILLRACE_DE265_LIBRARY de265)
if(NOT MILLRACE_DE265_INCLUDE OR NOT MILLRACE_DE265_LIBRARY)
  if(MILLRACE_HEIC STREQUAL "AUTO")
    message(STATUS "no libde265 (libde265-dev): millrace is built without HEIC")
    return()
  endif()
  message(FATAL_ERROR "no libde265: install libde265-dev")
endif()

# The soname has the number of the interface that the headers describe; the file is named otherwise.
get_filename_component(folder ${MILLRACE_DE265_LIBRARY} DIRECTORY)
file(GLOB names RELATIVE ${folder} ${folder}/libde265.so.?)
list(LENGTH names count)
if(NOT count EQUAL 1)
  message(FATAL_ERROR "${folder}: no one libde265.so.N to be seen; set MILLRACE_HEIC to OFF")
endif()
string(REGEX MATCH "[0-9]+$" number ${names})
set(MILLRACE_HEIC_PACKAGE libde265-${number})
add_library(millrace_de265_headers INTERFACE IMPORTED GLOBAL)
target_include_directories(millrace_de265_headers INTERFACE ${MILLRACE_DE265_INCLUDE})
target_compile_definitions(millrace_de265_headers INTERFACE MILLRACE_DE265_SONAME="${names}" MILLRACE_DE265_PACKAGE="${MILLRACE_HEIC_PACKAGE}")
set(MILLRACE_HAS_HEIC TRUE)
