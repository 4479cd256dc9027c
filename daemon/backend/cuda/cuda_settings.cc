#include "daemon/backend/cuda/cuda_settings.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>

#include "daemon/backend/cuda/cuda_wire.h"

namespace millrace {
namespace {

// Of the host's memory, what a process with a CUDA context has beside ours: an estimate, never measured on a GPU.
constexpr Bytes kCudaProcess = 512_MiB;
// Pinned for each lane: plans, and the rooms beside its part of the staging.
constexpr Bytes kOfLane = kCudaPlans + Bytes{kCudaHalves * CudaStaging::kRooms};

constexpr KeyGroup kGroups[] = {
    {"cuda",
     "NVIDIA's GPUs, where backends.cuda switches them on. Each is owned by a process of its own, millrace-cuda."},
};

// clang-format off
const Key kKeys[] = {
    {"cuda.devices", place(in_group<&CudaSettings::devices>), "Which GPUs: UUIDs as `nvidia-smi -L` prints them, or numbers as CUDA counts them, for example [\"GPU-8f6c...\", \"1\"]. Empty: all that the daemon sees."},
    {"cuda.lanes", number(in_group<&CudaSettings::lanes>, 1, kMostCudaLanes), "Of a GPU, 1 to 4; they share its memory and its staging. Each has two batches under way: while one is decoded there, the next one is copied and planned."},
    {"cuda.memory", number(in_group<&CudaSettings::memory>, 128ULL << 20, 64ULL << 30), "Of each GPU's memory, beside what a CUDA context takes (some hundreds of MiB). Given back while nothing is to be made. A batch that does not fit is divided. At least 128 MiB."},
    {"cuda.tensors", number(in_group<&CudaSettings::tensors>, 0, 1024ULL << 30), "Of each GPU's memory, for the tensors of sessions that ask for them there. It is charged until the process that had the session ends. 0: no session may have any."},
    {"cuda.staging", number(in_group<&CudaSettings::staging>, 16ULL << 20, 16ULL << 30), "Of the host's memory, pinned, for each GPU: a quarter for files on their way there, the rest for tensors on their way back. At least 16 MiB. A batch has half of a lane's part; an image that is too large for that has all of it, alone; larger ones are made by the CPU. With 384 MiB, and cuda.memory twice as large as well, a GPU of 132 multiprocessors has batches of up to 192 photographs."},
    {"cuda.hang_milliseconds", number(in_group<&CudaSettings::hang>, 100, 600'000), "A GPU that has not finished a batch by then passes for lost: its process is killed and started anew, and its samples go to the CPU."},
    {"cuda.rest_milliseconds", number(in_group<&CudaSettings::rest>, 0, 86'400'000), "When a GPU has made nothing for so long, and no living process has had tensors in its memory, its process ends: what its CUDA context takes (some hundreds of MiB) is free for others. The next image waits for a new process. 0: never."},
    {"cuda.worker", place(in_group<&CudaSettings::worker>), "The program that owns a GPU. Empty: millrace-cuda, beside millraced or in ../libexec/millrace."},

    {"backends.cuda", choice(in_group<&CudaSettings::wanted>, kWantedWords), "Decode and transform baseline JPEG files on NVIDIA's GPUs; what they cannot do goes to the CPU. \"auto\": where there are some. \"yes\": the daemon does not start without. \"no\": their memory is left to others."},
};
// clang-format on

// Those that are named, or those that the kernel's driver has, or one.
std::uint64_t gpus_of(const CudaSettings& settings) {
  if (settings.wanted == Wanted::kNo) return 0;
  if (!settings.devices.empty()) return settings.devices.size();
  std::uint64_t gpus = 0;
  std::error_code none;
  for (auto at = std::filesystem::directory_iterator(settings.kernel_gpus, none); !none && at != end(at);
       at.increment(none))
    ++gpus;
  return std::max<std::uint64_t>(1, gpus);
}

std::vector<Complaint> complaints(const Settings& settings) {
  const CudaSettings& cuda = settings.groups.of<CudaSettings>();
  if (std::set(cuda.devices.begin(), cuda.devices.end()).size() != cuda.devices.size())
    return {{"cuda.devices", "must name each GPU once"}};
  return {};
}

}  // namespace

SettingsPart cuda_settings() {
  return {.keys = kKeys, .groups = kGroups, .complaints = complaints};
}

Bytes cuda_tensors(const CudaSettings& settings) {
  return settings.tensors * gpus_of(settings);
}

Bytes cuda_staging(const CudaSettings& settings) {
  return (settings.staging + kCudaMemoryStagingBytes + kOfLane * settings.lanes + kCudaProcess) * gpus_of(settings);
}

}  // namespace millrace
