// What the four objects of Debian's libxrt_swemu.a want and these cards do not have, by the names that the linker knows:
// graphs of AI engines, profiling, and the emulator's own object. Nothing calls them for a card with compute units
// alone. And one function of these objects, which finds no cards, in our own version.
#include <cerrno>
#include <cstdint>

#include "hls/card/shim/card.h"

#define MILLRACE_ABSENT(number, symbol, value)    \
  extern "C" long absent_##number() asm(#symbol); \
  extern "C" long absent_##number() {             \
    return value;                                 \
  }

MILLRACE_ABSENT(1, _Z11xclGMIOWaitPvPKc, -ENOSYS)
MILLRACE_ABSENT(2, _Z11xclGraphEndPvm, -ENOSYS)
MILLRACE_ABSENT(3, _Z11xclGraphRunPvi, -ENOSYS)
MILLRACE_ABSENT(4, _Z12xclCmaEnablePvbm, -ENOSYS)
MILLRACE_ABSENT(5, _Z12xclGraphOpenPvPKhPKcN3xrt5graph11access_modeE, 0)
MILLRACE_ABSENT(6, _Z12xclGraphWaitPvm, -ENOSYS)
MILLRACE_ABSENT(7, _Z12xclSyncBOAIEPvRN3xrt2boEPKc18xclBOSyncDirectionmm, -ENOSYS)
MILLRACE_ABSENT(8, _Z13xclGraphClosePv, 0)
MILLRACE_ABSENT(9, _Z13xclGraphResetPv, -ENOSYS)
MILLRACE_ABSENT(10, _Z14xclGraphResumePv, -ENOSYS)
MILLRACE_ABSENT(11, _Z14xclSyncBOAIENBPvRN3xrt2boEPKc18xclBOSyncDirectionmm, -ENOSYS)
MILLRACE_ABSENT(12, _Z15xclGraphReadRTPPvPKcPcm, -ENOSYS)
MILLRACE_ABSENT(13, _Z15xclGraphSuspendPv, -ENOSYS)
MILLRACE_ABSENT(14, _Z16xclGraphWaitDonePvi, -ENOSYS)
MILLRACE_ABSENT(15, _Z16xclReadProfilingPvi, -ENOSYS)
MILLRACE_ABSENT(16, _Z16xclResetAIEArrayPv, -ENOSYS)
MILLRACE_ABSENT(17, _Z16xclStopProfilingPvi, 0)
MILLRACE_ABSENT(18, _Z17xclAIEOpenContextPvN3xrt3aie11access_modeE, -ENOSYS)
MILLRACE_ABSENT(19, _Z17xclGraphTimeStampPv, 0)
MILLRACE_ABSENT(20, _Z17xclGraphUpdateRTPPvPKcS1_m, -ENOSYS)
MILLRACE_ABSENT(21, _Z17xclLoadXclBinMetaPvPK4axlf, 0)
MILLRACE_ABSENT(22, _Z17xclStartProfilingPviPKcS1_j, -ENOSYS)
MILLRACE_ABSENT(23, _Z20xclCloseExportHandlei, 0)
MILLRACE_ABSENT(24, _Z22xclInternalResetDevicePv12xclResetKind, -ENOSYS)
MILLRACE_ABSENT(25, _Z22xclUpdateSchedulerStatPv, 0)
MILLRACE_ABSENT(26, _ZN12xclcpuemhal29CpuemShim11deviceQueryEN8xrt_core5query8key_typeE, 0)
MILLRACE_ABSENT(27, _ZN12xclcpuemhal29CpuemShim11handleCheckEPv, 0)

// A pair of 32-bit numbers as the ABI returns it: cards that are ready, cards in all.
extern "C" std::uint64_t total_cards(const void*, bool) asm("_ZNK8xrt_core5swemu6system17get_total_devicesEb");
extern "C" std::uint64_t total_cards(const void*, bool) {
  const std::uint64_t count = millrace::card::Card::count();
  return count | count << 32;
}
