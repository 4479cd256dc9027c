#include "daemon/backend/cpu/cpu_settings.h"

#include <set>
#include <string>

namespace millrace {
namespace {

using kernels::Target;
constexpr Word<LanePin> kPins[] = {
    {"none", LanePin::kNone}, {"auto", LanePin::kAuto}, {"node", LanePin::kNode}, {"core", LanePin::kCore}};
constexpr Word<std::optional<Target>> kTargets[] = {{"auto", std::nullopt},
                                                    {"scalar", Target::kScalar},
                                                    {"avx2", Target::kAvx2},
                                                    {"avx512bw", Target::kAvx512Bw},
                                                    {"avx512", Target::kAvx512}};
constexpr Word<Isolation> kIsolations[] = {{"none", Isolation::kNone}, {"process", Isolation::kProcess}};

constexpr KeyGroup kGroups[] = {
    {"cpu",
     "How the CPU's lanes decode. Pixels do not depend on it, but that \"scalar\" is exact where a request is content "
     "with fidelity fast."},
};

// clang-format off
const Key kKeys[] = {
    {"lanes.cpu", number(in_group<&CpuSettings::lanes>, 0, 4'096), "Threads that decode and transform. 0: one for each of lanes.cores, or each processor that the daemon may use, but no more than its control group's share of time (cpu.max)."},
    {"lanes.cores", place(in_group<&CpuSettings::cores>), "Pins the lanes to these cores, in order, for example [2, 3, 4]. Empty: the kernel chooses."},
    {"lanes.pin", choice(in_group<&CpuSettings::pin>, kPins), "Where lanes stay unless lanes.cores says it. \"none\": the kernel chooses, best beside other people's jobs. \"node\": on a NUMA node each, in turns. \"core\": on a core each, one lane on every core before SMT siblings get one; for hosts or cpusets that the daemon has to itself. \"auto\": \"node\" if there are several, else \"none\"."},

    {"cpu.target", choice(in_group<&CpuSettings::target>, kTargets), "Instruction set. \"auto\": the best that this processor has. `millrace doctor` says how it decodes then."},
    {"cpu.isolation", choice(in_group<&CpuSettings::isolation>, kIsolations), "Where decoders run that are not Millrace's own: libjpeg-turbo (for what is not baseline), libspng, libwebp, libtiff, libavif, libde265. \"none\": in the daemon. \"process\": in processes beside the lanes, one for each user, that may do nothing but decode; a file that breaks a decoder costs its own sample. Pixels are the same. Costs some per cent of the time of such images, and up to 80 MiB a lane. security_model.md, in /usr/share/doc/millrace-daemon or daemon/doc, says what it holds back."},
    {"cpu.decoder", place(in_group<&CpuSettings::decoder>), "The program that they run. Empty: millrace-decoder, beside millraced or in ../libexec/millrace."},

    {"backends.cpu", place(in_group<&CpuSettings::wanted>), "Decode and transform on the CPU's lanes."},
};
// clang-format on

constexpr std::string_view kNowByTable = "the daemon has a table of processors instead; take this line out";
constexpr GoneKey kGone[] = {{"cpu.streams", kNowByTable}, {"cpu.indexed", kNowByTable}};

std::vector<Complaint> complaints(const Settings& settings) {
  constexpr int kMostCores = 4'096;
  const CpuSettings& cpu = settings.groups.of<CpuSettings>();
  std::vector<Complaint> all;
  for (const int core : cpu.cores) {
    if (core < 0 || core >= kMostCores)
      all.push_back({"lanes.cores", "must hold core numbers from 0 to " + std::to_string(kMostCores - 1) + ", one is " +
                                        std::to_string(core)});
  }
  if (std::set(cpu.cores.begin(), cpu.cores.end()).size() != cpu.cores.size())
    all.push_back({"lanes.cores", "must name each core once"});
  if (!cpu.cores.empty() && cpu.lanes > cpu.cores.size())
    all.push_back({"lanes.cpu", "must be at most the number of lanes.cores (" + std::to_string(cpu.cores.size()) +
                                    "), or 0, is " + std::to_string(cpu.lanes)});
  return all;
}

}  // namespace

SettingsPart cpu_settings() {
  return {.keys = kKeys, .groups = kGroups, .gone = kGone, .complaints = complaints};
}

}  // namespace millrace
