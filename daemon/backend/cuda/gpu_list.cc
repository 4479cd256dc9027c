#include "daemon/backend/cuda/gpu_list.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <utility>

#include "daemon/backend/device_host/channel.h"
#include "daemon/backend/device_host/host_process.h"
#include "proto/base/printable.h"

namespace millrace {
namespace {

using device_host::Channel;
using device_host::Clock;
using device_host::Heard;

constexpr std::chrono::seconds kPatienceWithList{60};  // without persistence mode eight GPUs take half a minute

constexpr std::size_t kMostGpus = 64;  // of a host

// What it says until the list ends.
Result<std::vector<Gpu>> hear_gpus(int control) {
  std::vector<Gpu> gpus;
  while (gpus.size() <= kMostGpus) {
    CudaReady ready;
    const Heard heard = device_host::receive(control, ready, Clock::now() + kPatienceWithList);
    if (heard == Heard::kLate)
      return Error{Code::kUnavailable, "the driver does not say within " + std::to_string(kPatienceWithList.count()) +
                                           " seconds which GPUs there are"};
    if (heard == Heard::kEnd)
      return Error{Code::kUnsupported, "millrace-cuda ended before it had said which GPUs there are"};
    if (ready.code == kCudaListEnds) return gpus;
    MILLRACE_TRY(Gpu gpu, gpu_of(ready));
    gpus.push_back(std::move(gpu));
  }
  return Error{Code::kUnsupported, "millrace-cuda names more than " + std::to_string(kMostGpus) + " GPUs"};
}

// The value of "GPU UUID: \t GPU-8f6c...", for the key "GPU UUID"; empty: it is another line.
std::string_view value_of(std::string_view key, std::string_view line) {
  if (line.substr(0, key.size() + 1) != std::string(key) + ":") return {};
  line.remove_prefix(key.size() + 1);
  const std::size_t begin = line.find_first_not_of(" \t"), end = line.find_last_not_of(" \t\r");
  return begin == std::string_view::npos ? std::string_view() : line.substr(begin, end - begin + 1);
}

// A UUID is all question marks as long as the kernel's driver has not begun with the GPU.
std::optional<Gpu> gpu_in(const std::filesystem::path& file) {
  std::ifstream lines(file);
  Gpu gpu;
  std::optional<CudaUuid> uuid;
  for (std::string line; std::getline(lines, line);) {
    if (const std::string_view model = value_of("Model", line); !model.empty()) gpu.name = printable(model);
    if (const std::string_view text = value_of("GPU UUID", line); !text.empty()) uuid = cuda::uuid_from_text(text);
  }
  if (!uuid) return std::nullopt;
  gpu.uuid = *uuid;
  return gpu;
}

}  // namespace

std::string cuda_program(const std::string& path) {
  return device_host::find_program(path, kCudaProgram);
}

Result<Gpu> gpu_of(const CudaReady& ready_untrusted) {
  const CudaReady& ready = ready_untrusted;
  if (ready.version != kCudaWireVersion)
    return Error{Code::kUnsupported, "millrace-cuda is of another version than this daemon: restart the daemon"};
  if (ready.code != 0) return device_host::error_of(ready.code, ready.text, kCudaProgram);
  Gpu gpu{.ordinal = ready.ordinal,
          .name = device_host::text_of(ready.name),
          .memory = {ready.memory_bytes},
          .major = ready.major,
          .minor = ready.minor,
          .multiprocessors = ready.multiprocessors,
          .driver_version = ready.driver_version};
  std::copy(std::begin(ready.uuid), std::end(ready.uuid), gpu.uuid.begin());
  return gpu;
}

Result<std::vector<Gpu>> list_gpus(const std::string& program) {
  MILLRACE_TRY(Channel channel, device_host::make_channel(kCudaProgram));
  const device_host::Handed control[] = {{channel.theirs.get(), kCudaControl}};
  MILLRACE_TRY(const pid_t pid, device_host::start_process(program, control));
  channel.theirs.reset();
  const bool sent = device_host::send_to(channel.ours.get(), CudaHello{.work = CudaWork::kList});
  Result<std::vector<Gpu>> gpus =
      sent ? hear_gpus(channel.ours.get()) : Error{Code::kInternal, program + " ended as it began"};
  device_host::reap(pid);
  return gpus;
}

std::vector<Gpu> gpus_of_kernel(const std::string& folder) {
  std::vector<std::filesystem::path> places;
  std::error_code none;
  for (auto at = std::filesystem::directory_iterator(folder, none); !none && at != end(at); at.increment(none))
    places.push_back(at->path());
  std::sort(places.begin(), places.end());
  std::vector<Gpu> gpus;
  for (const std::filesystem::path& place : places) {
    std::optional<Gpu> gpu = gpu_in(place / "information");
    if (!gpu) continue;
    gpu->ordinal = static_cast<int>(gpus.size());
    gpus.push_back(*std::move(gpu));
  }
  return gpus;
}

}  // namespace millrace
