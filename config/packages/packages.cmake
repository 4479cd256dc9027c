# Debian packages, by CPack: `config/setup.sh package` builds them. One a component of the installation:
#   daemon         millrace-daemon   millraced, its settings, its units
#   fpga           millrace-fpga     what drives FPGAs for the daemon; only where the build has XRT
#   command_line   millrace          the command `millrace`
#   library        libmillrace0      libmillrace.so.0
#   development    libmillrace-dev   headers, CMake package, pkg-config file
# What they depend on dpkg-shlibdeps finds out. They are for a prefix of /usr alone.
if(NOT CMAKE_INSTALL_PREFIX STREQUAL "/usr" OR NOT BUILD_SHARED_LIBS)
  return()
endif()
set(here ${CMAKE_CURRENT_SOURCE_DIR}/packages)
set(made ${CMAKE_CURRENT_BINARY_DIR}/packages)

# millrace_manual(PROGRAM SECTION COMPONENT TITLE): its manual page, out of its --help.
find_program(HELP2MAN help2man)
find_program(GZIP gzip REQUIRED)
function(millrace_manual target section component title)
  if(NOT HELP2MAN)
    return()
  endif()
  set(name $<TARGET_FILE_NAME:${target}>)
  set(page ${made}/${target}.${section}.gz)
  add_custom_command(OUTPUT ${page} DEPENDS ${target} VERBATIM
    COMMAND ${HELP2MAN} --no-info --section=${section} --source=Millrace --name=${title} --output=${made}/${target}.${section} $<TARGET_FILE:${target}>
    COMMAND ${GZIP} -9nf ${made}/${target}.${section})
  add_custom_target(${target}_manual ALL DEPENDS ${page})
  install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section} RENAME ${name}.${section}.gz COMPONENT ${component})
endfunction()
millrace_manual(millraced 8 daemon "image preprocessing daemon")
if(TARGET millrace-opener)
  millrace_manual(millrace-opener 8 daemon "open files for millraced with the rights of its clients")
endif()
millrace_manual(millrace_cli 1 command_line "ask Millrace, the image preprocessing daemon")

# What Debian wants beside every package.
string(TIMESTAMP changed "%a, %d %b %Y %H:%M:%S +0000" UTC)  # $SOURCE_DATE_EPOCH, where it is set
set(release 1)
configure_file(${here}/changelog.in ${made}/changelog.Debian @ONLY)
execute_process(COMMAND ${GZIP} -9nkf ${made}/changelog.Debian)
set(packages daemon:millrace-daemon command_line:millrace library:libmillrace0 development:libmillrace-dev)
if(TARGET millrace-fpga)
  list(APPEND packages fpga:millrace-fpga)
endif()
foreach(pair ${packages})
  string(REPLACE ":" ";" pair ${pair})
  list(GET pair 0 component)
  list(GET pair 1 package)
  install(FILES ${here}/copyright ${made}/changelog.Debian.gz DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/${package} COMPONENT ${component})
  install(FILES ${here}/lintian-overrides DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/lintian/overrides RENAME ${package} COMPONENT ${component})
  string(TOUPPER ${component} key)
  set(CPACK_DEBIAN_${key}_PACKAGE_NAME ${package})
  set(CPACK_DEBIAN_${key}_PACKAGE_SHLIBDEPS ON)
endforeach()
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SHLIBDEPS OFF)

# The daemon's maintainer scripts know which units there are.
list(TRANSFORM units APPEND ".socket" OUTPUT_VARIABLE sockets)
list(TRANSFORM units APPEND ".service" OUTPUT_VARIABLE services)
list(JOIN sockets " " sockets)
list(JOIN services " " services)
foreach(script postinst prerm postrm)
  configure_file(${here}/${script}.in ${made}/${script} @ONLY FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
endforeach()
set(CPACK_DEBIAN_DAEMON_PACKAGE_CONTROL_EXTRA ${made}/postinst ${made}/prerm ${made}/postrm ${here}/conffiles)
set(CPACK_DEBIAN_DAEMON_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_DAEMON_PACKAGE_DEPENDS "systemd | systemd-standalone-sysusers, systemd | systemd-standalone-tmpfiles")
set(CPACK_DEBIAN_DAEMON_PACKAGE_RECOMMENDS "millrace")
set(CPACK_DEBIAN_COMMAND_LINE_PACKAGE_SUGGESTS "millrace-daemon")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libmillrace0 (= ${PROJECT_VERSION}-${release})")

set(CPACK_DEBIAN_DAEMON_PACKAGE_SUGGESTS "millrace-fpga")
if(MILLRACE_HAS_AVIF)  # loaded at run time, so dpkg-shlibdeps does not see it
  string(APPEND CPACK_DEBIAN_DAEMON_PACKAGE_SUGGESTS ", ${MILLRACE_AVIF_PACKAGE}")
endif()
set(CPACK_DEBIAN_FPGA_PACKAGE_DEPENDS "millrace-daemon (= ${PROJECT_VERSION}-${release})")

set(CPACK_DEBIAN_DAEMON_PACKAGE_SECTION graphics)
set(CPACK_DEBIAN_FPGA_PACKAGE_SECTION graphics)
set(CPACK_DEBIAN_COMMAND_LINE_PACKAGE_SECTION graphics)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
file(WRITE ${made}/shlibs "libmillrace ${PROJECT_VERSION_MAJOR} libmillrace0 (>= ${PROJECT_VERSION})\n")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${here}/triggers ${made}/shlibs)
set(about "Millrace is one daemon for a host that decodes, crops, resizes and normalises\nimages for training jobs and inference servers, and hands them finished tensors\nin shared memory.")
set(CPACK_COMPONENT_DAEMON_DESCRIPTION "${about}\n.\nThis package has the daemon, its settings and its systemd units.")
set(CPACK_COMPONENT_FPGA_DESCRIPTION "${about}\n.\nThis package has the program that drives FPGAs for the daemon, by XRT.")
set(CPACK_COMPONENT_COMMAND_LINE_DESCRIPTION "${about}\n.\nThis package has the command millrace.")
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION "${about}\n.\nThis package has the library for programs in C++.")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "${about}\n.\nThis package has headers, a CMake package and a pkg-config file.")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME millrace)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "image preprocessing daemon for deep learning")
set(CPACK_PACKAGE_VENDOR "the Millrace authors")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "${MILLRACE_MAINTAINER}")
set(CPACK_DEBIAN_PACKAGE_RELEASE ${release})
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEB_COMPONENT_INSTALL ON)
list(TRANSFORM packages REPLACE ":.*" "" OUTPUT_VARIABLE CPACK_COMPONENTS_ALL)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_SET_DESTDIR ON)  # for /etc
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
include(CPack)
