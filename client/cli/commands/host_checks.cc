#include "client/cli/commands/host_checks.h"

#include <dlfcn.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include "millrace/result.h"

namespace millrace::cli {
namespace {

// Below this not even a few small batches fit.
constexpr Bytes kLeastSharedMemory{std::uint64_t{16} << 20};
// A training batch of 256 images of 224x224 has 38.5 MB, and a loop wants a few of them.
constexpr Bytes kUsualSharedMemory{std::uint64_t{256} << 20};

// Of NVIDIA, for kernels that were compiled by CUDA 13.
constexpr int kLeastDriver = 580;

// The value of the first line "key : value" of a file like /proc/cpuinfo.
std::string value_in(const std::string& file, std::string_view key) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    const std::size_t end = line.find_last_not_of("\t ", colon - (colon > 0 ? 1 : 0));
    if (end != std::string::npos && std::string_view(line).substr(0, end + 1) == key) return line.substr(colon + 2);
  }
  return "";
}

Finding processor(const HostPaths& paths) {
  std::string model = value_in(paths.cpuinfo, "model name");
  if (model.empty()) model = "of unknown model";
  cpu_set_t usable;
  CPU_ZERO(&usable);
  const long online = ::sysconf(_SC_NPROCESSORS_ONLN);
  const bool known = ::sched_getaffinity(0, sizeof usable, &usable) == 0;
  const long mine = known ? CPU_COUNT(&usable) : online;
  return {"processor", model + ", " + std::to_string(mine) + " of " + std::to_string(online) + " usable here"};
}

Finding shared_memory(const HostPaths& paths) {
  const std::string enlarge =
      "enlarge it: mount -o remount,size=2G /dev/shm; docker run --shm-size=2g; in Kubernetes an emptyDir of medium "
      "Memory";
  struct statvfs status {};
  if (::statvfs(paths.shared_memory.c_str(), &status) != 0)
    return {"shared memory", paths.shared_memory + ": " + std::generic_category().message(errno), Verdict::kProblem,
            "mount a tmpfs there"};
  const Bytes size = Bytes{status.f_blocks} * status.f_frsize;
  const Bytes free = Bytes{status.f_bavail} * status.f_frsize;
  const bool unlimited = size == 0_B;
  Finding finding{"shared memory", paths.shared_memory + ": " +
                                       (unlimited ? "no limit" : to_text(size) + ", " + to_text(free) + " free")};
  if (unlimited || free >= kUsualSharedMemory) return finding;
  finding.verdict = free < kLeastSharedMemory ? Verdict::kProblem : Verdict::kNote;
  finding.advice = enlarge;
  return finding;
}

Finding locked_memory() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return {"locked memory", "unknown", Verdict::kNote};
  return {"locked memory", limit.rlim_cur == RLIM_INFINITY ? "no limit" : "at most " + to_text(Bytes{limit.rlim_cur})};
}

// The option huge= of the tmpfs mounted there: "advise", "within_size", "always", or "never", which is the default.
// Where something is mounted over it, the last one counts.
std::string huge_option(const std::string& mounts, const std::string& folder) {
  constexpr std::string_view kOption = "huge=";
  std::string found = "never";
  std::ifstream lines(mounts);
  std::string device, point, type, options, rest;
  while (lines >> device >> point >> type >> options && std::getline(lines, rest)) {
    if (point != folder) continue;
    found = "never";
    std::istringstream list(options);
    for (std::string option; std::getline(list, option, ',');) {
      if (option.starts_with(kOption)) found = option.substr(kOption.size());
    }
  }
  return found;
}

Finding huge_pages(const HostPaths& paths) {
  const std::string option = huge_option(paths.mounts, paths.shared_memory);
  Finding finding{"huge pages", paths.shared_memory + ": " + option};
  if (option != "never" && option != "deny") return finding;
  finding.verdict = Verdict::kNote;
  finding.advice =
      "with them sessions open and tensors are read with fewer page faults: mount -o remount,huge=advise " +
      paths.shared_memory;
  return finding;
}

// "580.65.06" of "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  ..."; empty: it is not told.
std::string driver_version(const std::string& file) {
  std::ifstream words(file);
  for (std::string word; words >> word;) {
    const bool is_version = word.find_first_not_of("0123456789.") == std::string::npos;
    if (is_version && word.find('.') != std::string::npos) return word;
  }
  return "";
}

std::size_t entries_of(const std::string& folder) {
  std::error_code none;
  const auto all = std::filesystem::directory_iterator(folder, none);
  return none ? 0 : static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

// NVIDIA's management library, which the driver brings: what it takes to ask for compute modes.
struct Nvml {
  struct Device;  // the library's own
  int (*nvmlInit_v2)() = nullptr;
  int (*nvmlShutdown)() = nullptr;
  int (*nvmlDeviceGetCount_v2)(unsigned*) = nullptr;
  int (*nvmlDeviceGetHandleByIndex_v2)(unsigned, Device**) = nullptr;
  int (*nvmlDeviceGetComputeMode)(Device*, int*) = nullptr;

  bool load() {
    void* const library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);  // never closed: this process ends soon
    if (library == nullptr) return false;
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
      return function != nullptr;
    };
    return find(nvmlInit_v2, "nvmlInit_v2") && find(nvmlShutdown, "nvmlShutdown") &&
           find(nvmlDeviceGetCount_v2, "nvmlDeviceGetCount_v2") &&
           find(nvmlDeviceGetHandleByIndex_v2, "nvmlDeviceGetHandleByIndex_v2") &&
           find(nvmlDeviceGetComputeMode, "nvmlDeviceGetComputeMode");
  }
};

std::optional<Finding> compute_mode(const Nvml& nvml, unsigned index) {
  constexpr int kSuccess = 0, kProhibited = 2, kExclusiveProcess = 3;  // of nvml.h
  Nvml::Device* device = nullptr;
  int mode = 0;
  if (nvml.nvmlDeviceGetHandleByIndex_v2(index, &device) != kSuccess) return std::nullopt;
  if (nvml.nvmlDeviceGetComputeMode(device, &mode) != kSuccess) return std::nullopt;
  const std::string gpu = std::to_string(index), name = "compute mode",
                    mend = "`nvidia-smi -i " + gpu + " -c DEFAULT`, as root, lets several in; daemon/doc/gpu.md";
  if (mode == kProhibited)
    return Finding{name, "GPU " + gpu + ": PROHIBITED, so no process can use CUDA there", Verdict::kNote, mend};
  if (mode == kExclusiveProcess)
    return Finding{name, "GPU " + gpu + ": EXCLUSIVE_PROCESS, so the daemon and a training job cannot share it",
                   Verdict::kNote, mend + ". leave it as it is where MPS serves that GPU"};
  return std::nullopt;
}

}  // namespace

Findings check_compute_modes() {
  Nvml nvml;
  unsigned gpus = 0;
  if (!nvml.load() || nvml.nvmlInit_v2() != 0) return {};
  if (nvml.nvmlDeviceGetCount_v2(&gpus) != 0) gpus = 0;
  Findings findings;
  for (unsigned index = 0; index < gpus; ++index) {
    if (std::optional<Finding> finding = compute_mode(nvml, index)) findings.push_back(*std::move(finding));
  }
  static_cast<void>(nvml.nvmlShutdown());
  return findings;
}

Findings check_gpus(bool used, const HostPaths& paths) {
  const std::size_t gpus = entries_of(paths.nvidia + "/gpus");
  if (gpus == 0) return {};
  const std::string version = driver_version(paths.nvidia + "/version");
  Finding finding{"GPUs", std::to_string(gpus) + " of NVIDIA's, driver " + (version.empty() ? "unknown" : version)};
  const bool too_old = !version.empty() && std::atoi(version.c_str()) < kLeastDriver;
  if (too_old) {
    finding.verdict = Verdict::kNote;
    finding.advice = "the daemon uses GPUs from driver " + std::to_string(kLeastDriver) + " on";
  } else if (!used) {
    finding.verdict = Verdict::kNote;
    finding.advice =
        "the daemon uses none of them: backends.cuda = \"auto\" in its settings has it decode there, and takes 1 GiB "
        "of "
        "each one's memory while there is work; daemon/doc/gpu.md";
  }
  return {finding};
}

Finding check_instruction_sets(const std::vector<std::string>& sets) {
  std::string text;
  for (auto set = sets.rbegin(); set != sets.rend(); ++set) {
    if (*set != "scalar") text += (text.empty() ? "" : ", ") + *set;
  }
  if (!text.empty()) return {"instruction sets", text};
  return {"instruction sets", "neither AVX2 nor AVX-512", Verdict::kNote,
          "libjpeg-turbo decodes and scalar code resamples, at less than half the speed; a processor with AVX2 helps"};
}

Findings check_host(const HostPaths& paths) {
  return {processor(paths), shared_memory(paths), locked_memory(), huge_pages(paths)};
}

}  // namespace millrace::cli
