# Where an installation has its settings, which the units, the packages, and the daemon's own words name:
#   MILLRACE_CONFIG_DESTINATION  the folder, as install() takes it
#   MILLRACE_CONFIG_DIR          the same from / on
#   MILLRACE_EXAMPLE_SETTINGS    the commented original, which nobody edits
include(GNUInstallDirs)

# FHS: a prefix of /usr keeps its settings in /etc.
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  set(MILLRACE_CONFIG_DESTINATION /etc/millrace)
else()
  set(MILLRACE_CONFIG_DESTINATION ${CMAKE_INSTALL_SYSCONFDIR}/millrace)
endif()
get_filename_component(MILLRACE_CONFIG_DIR ${MILLRACE_CONFIG_DESTINATION} ABSOLUTE BASE_DIR ${CMAKE_INSTALL_PREFIX})
set(MILLRACE_EXAMPLE_SETTINGS ${CMAKE_INSTALL_FULL_DATAROOTDIR}/doc/millrace-daemon/examples/millrace.toml)
