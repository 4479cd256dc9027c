# cmake -DAR=... -DNM=... -DOBJCOPY=... -DARCHIVE=... -P extract.cmake: takes four objects out of Debian's libxrt_swemu.a into the working folder, and
# lets shim/archive_symbols.cc and shim/sensors.cc define two of their functions anew. What one of these was goes on under a name of ours.
function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY OUTPUT_VARIABLE said)
  set(said "${said}" PARENT_SCOPE)
endfunction()

set(total _ZNK8xrt_core5swemu6system17get_total_devicesEb)
set(lookup _ZNK8xrt_core5swemu6device12lookup_queryENS_5query8key_typeE)
run(${AR} x ${ARCHIVE} device_swemu.cxx.o system_swemu.cxx.o device_pcie.cpp.o system_pcie.cpp.o)
run(${OBJCOPY} --weaken-symbol=${total} system_swemu.cxx.o)
run(${NM} device_swemu.cxx.o)
if(NOT said MATCHES "([0-9a-f]+) T ${lookup}\n")
  message(FATAL_ERROR "${ARCHIVE}: device_swemu.cxx.o has no ${lookup}")
endif()
run(${OBJCOPY} --add-symbol millrace_emulator_query=.text:0x${CMAKE_MATCH_1},function,global --weaken-symbol=${lookup} device_swemu.cxx.o)
