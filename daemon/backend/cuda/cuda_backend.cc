#include "daemon/backend/cuda/cuda_backend.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <string>
#include <utility>

#include "daemon/backend/cuda/cuda_lane.h"
#include "daemon/backend/cuda/cuda_order.h"
#include "daemon/observe/log.h"

namespace millrace {
namespace {

constexpr std::uint64_t kPage = CudaStaging::kPage;

// Files are a quarter of it: photographs of 110 KB make tensors of 300 KB and more.
CudaStaging staging_of(const CudaSettings& settings) {
  const std::uint64_t lane = settings.staging.count / settings.lanes;
  return {.encoded_bytes = lane / 4 / kPage * kPage, .tensor_bytes = lane / 4 * 3 / kPage * kPage};
}

CudaWorkerOrder order_of(const CudaSettings& settings, const CudaStaging& staging) {
  return {.lanes = settings.lanes,
          .encoded = {staging.encoded_bytes},
          .tensors = {staging.tensor_bytes},
          .device = {settings.memory.count / settings.lanes}};
}

bool is_named(const Gpu& gpu, const std::string& name) {
  const std::string uuid = cuda::uuid_text(gpu.uuid);
  const auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == std::tolower(b); };
  return name == std::to_string(gpu.ordinal) || std::equal(name.begin(), name.end(), uuid.begin(), uuid.end(), same);
}

Error no_such(const std::string& name, const std::vector<Gpu>& all) {
  std::string there;
  for (const Gpu& gpu : all)
    there += (there.empty() ? "" : ", ") + cuda::uuid_text(gpu.uuid) + " (" + std::to_string(gpu.ordinal) + ")";
  return Error{Code::kInvalid, "cuda.devices: there is no GPU " + name + "; there are " + there};
}

Result<std::vector<Gpu>> chosen(std::vector<Gpu> all, const std::vector<std::string>& names) {
  if (names.empty()) return all;
  std::vector<Gpu> gpus;
  for (const std::string& name : names) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const Gpu& gpu) { return is_named(gpu, name); });
    if (found == all.end()) return no_such(name, all);
    const bool twice = std::any_of(gpus.begin(), gpus.end(), [&](const Gpu& gpu) { return gpu.uuid == found->uuid; });
    if (twice) return Error{Code::kInvalid, "cuda.devices: " + name + " is a GPU that is named twice"};
    gpus.push_back(*found);
  }
  return gpus;
}

std::string cuda_version(int driver) {
  return std::to_string(driver / 1000) + "." + std::to_string(driver % 1000 / 10);
}

// Memories are numbered as the GPUs are, behind the host's.
MemoryId memory_id(std::uint32_t number) {
  return MemoryId{raw(kHostMemory) + 1 + number};
}

BackendInfo info_of(const Gpu& gpu, std::uint32_t number, const CudaSettings& settings) {
  const std::string capability = std::to_string(gpu.major) + "." + std::to_string(gpu.minor);
  const bool is_seen = gpu.major > 0;
  return {
      .name = "cuda:" + std::to_string(number),
      .device = gpu.name,
      .detail = is_seen ? "compute capability " + capability + ", driver for CUDA " + cuda_version(gpu.driver_version)
                        : "CUDA could not be used when the daemon started",
      .lanes = settings.lanes,
      .formats = {ImageFormat::kJpeg},
      .memories = {memory_id(number)},
      .properties = {{"uuid", cuda::uuid_text(gpu.uuid)},
                     {"memory", to_text(settings.memory) + (is_seen ? " of " + to_text(gpu.memory) : "") + " at most"},
                     {"tensors", to_text(settings.tensors) + " at most, of sessions in its memory"},
                     {"staging", to_text(settings.staging) + " of the host's memory"}},
      .copies_files = true};
}

bool is_uuid(const std::string& name) {
  return cuda::uuid_from_text(name).has_value();
}

// Where CUDA cannot be used as yet, those of the kernel's driver stand for its own: each is tried again and again. CUDA's
// numbers are not the kernel's, and which GPUs CUDA_VISIBLE_DEVICES hides the kernel does not know.
Result<std::vector<Gpu>> gpus_there_are(const CudaSettings& cuda) {
  Result<std::vector<Gpu>> all = list_gpus(cuda_program(cuda.worker));
  if (all || all.error().code != Code::kUnavailable || cuda.wanted != Wanted::kAuto) return all;
  if (!std::all_of(cuda.devices.begin(), cuda.devices.end(), is_uuid) || std::getenv("CUDA_VISIBLE_DEVICES") != nullptr)
    return all;
  std::vector<Gpu> known = gpus_of_kernel(cuda.kernel_gpus);
  for (const std::string& name : cuda.devices) {
    const auto is_it = [&](const Gpu& gpu) { return is_named(gpu, name); };
    if (std::none_of(known.begin(), known.end(), is_it))
      known.push_back({.uuid = *cuda::uuid_from_text(name), .name = "GPU"});
  }
  if (known.empty()) return all;
  log_warning(all.error().message + "; " + std::to_string(known.size()) +
              " GPUs that the kernel or cuda.devices names begin as lost, and are tried again");
  return known;
}

}  // namespace

bool wants_cuda(const Settings& settings) {
  return settings.groups.of<CudaSettings>().wanted != Wanted::kNo;
}

HostMemory cuda_host_memory(const Settings& settings) {
  return {cuda_staging(settings.groups.of<CudaSettings>()),
          "cuda.staging and 8 MiB for each GPU, 18 MiB for each of its lanes, and 512 MiB assumed for its process"};
}

// A GPU that will not do is left out, with words, unless it was named; one that only cannot be had now begins as lost.
Result<std::vector<std::unique_ptr<Backend>>> make_cuda_backends(const Settings& settings,
                                                                 const BackendServices& services) {
  const CudaSettings& cuda = settings.groups.of<CudaSettings>();
  std::vector<std::unique_ptr<Backend>> backends;
  const auto without = [&](const Error& why) -> Result<std::vector<std::unique_ptr<Backend>>> {
    if (cuda.wanted != Wanted::kAuto) return Error{Code::kInvalid, "backends.cuda = \"yes\": " + why.message};
    log_info("backends.cuda = \"auto\": " + why.message);
    return std::vector<std::unique_ptr<Backend>>();
  };
  Result<std::vector<Gpu>> all = gpus_there_are(cuda);
  if (!all) return without(all.error());
  MILLRACE_TRY(const std::vector<Gpu> gpus, chosen(*std::move(all), cuda.devices));
  Error last{Code::kUnsupported, "there is no GPU"};
  std::vector<std::unique_ptr<CudaDevice>> devices;  // they come up at once
  for (const Gpu& gpu : gpus) {
    devices.push_back(CudaBackend::device_of(gpu, cuda));
    MILLRACE_TRY_VOID(devices.back()->begin());
  }
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const Gpu& gpu = gpus[i];
    auto backend =
        CudaBackend::create(gpu, std::move(devices[i]), static_cast<std::uint32_t>(backends.size()), cuda, services);
    if (backend) {
      backends.push_back(*std::move(backend));
      continue;
    }
    last = backend.error().within(gpu.name + " " + cuda::uuid_text(gpu.uuid));
    if (!cuda.devices.empty()) return without(last);
    if (gpus.size() > 1) log_warning(last.message + "; it is left out");
  }
  return backends.empty() ? without(last) : Result<std::vector<std::unique_ptr<Backend>>>(std::move(backends));
}

std::unique_ptr<CudaDevice> CudaBackend::device_of(const Gpu& gpu, const CudaSettings& settings) {
  const auto start =
      [program = cuda_program(settings.worker), uuid = gpu.uuid,
       order = order_of(settings, staging_of(settings))]() -> Result<std::shared_ptr<device_host::HostProcess>> {
    MILLRACE_TRY(std::shared_ptr<CudaWorker> worker, CudaWorker::start(program, uuid, order));
    return std::shared_ptr<device_host::HostProcess>(std::move(worker));
  };
  return std::make_unique<CudaDevice>(
      device_host::DeviceDescription{.what = "GPU", .thread = "mr-gpu", .start = start, .rest_after = settings.rest});
}

// The tokeniser has a thread block for each image, and seven on a multiprocessor at once: more images cost it little time
// more. Jobs of more than one batch would only wait for themselves.
QueueDepth cuda_queue_depth(const Gpu& gpu, const CudaSettings& settings) {
  constexpr std::uint32_t kLeastJob = 64, kMostJob = 192, kWhole = 16;
  constexpr Bytes kPhotograph = 110_KiB;
  const auto room = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(staging_of(settings).half(0).encoded_bytes / kPhotograph.count, kMostJob));
  const std::uint32_t wanted = static_cast<std::uint32_t>(std::max(gpu.multiprocessors, 0)) * 3 / 2;
  const std::uint32_t most = std::max(std::min(wanted, room), kLeastJob) / kWhole * kWhole;
  return {.jobs = 2 * kCudaHalves * settings.lanes, .at_once = settings.lanes, .few = most / 4, .most = most};
}

Result<std::unique_ptr<Backend>> CudaBackend::create(const Gpu& gpu, std::unique_ptr<CudaDevice> device,
                                                     std::uint32_t number, const CudaSettings& settings,
                                                     const BackendServices& services) {
  MILLRACE_TRY_VOID(device->wait_until_begun());
  return std::unique_ptr<Backend>(
      new CudaBackend(gpu, number, std::move(device), staging_of(settings), settings, services));
}

CudaBackend::CudaBackend(const Gpu& gpu, std::uint32_t number, std::unique_ptr<CudaDevice> device, CudaStaging staging,
                         const CudaSettings& settings, const BackendServices& services)
    : number_(number),
      settings_(settings),
      depth_(cuda_queue_depth(gpu, settings)),
      info_(info_of(gpu, number, settings)),
      latest_(info_),
      staging_(staging),
      turns_(info_.lanes),
      device_(std::move(device)),
      memory_(settings.tensors.count == 0 ? nullptr
                                          : CudaMemory::create(*device_, {.id = info_.memories.front(),
                                                                          .name = info_.name,
                                                                          .gpu = gpu.uuid,
                                                                          .most = settings.tensors,
                                                                          .patience = settings.hang})),
      lanes_(*device_, kCudaHalves * settings.lanes, depth_.jobs, "mr-gpu-", services.limits,
             [this](std::uint32_t thread, const DecodeJob& job, const SampleLimits& limits,
                    const std::function<bool()>& stopped) {
               const CudaHalf half{thread / kCudaHalves, thread % kCudaHalves};
               return CudaLane(*device_, turns_[half.lane], info_.memories.front(), half, staging_, settings_.hang)
                   .run(job, limits, stopped);
             }) {}

BackendInfo CudaBackend::info() const {
  const std::shared_ptr<CudaWorker> worker = device_->current();
  MutexLock lock(mutex_);
  if (worker) latest_ = info_of(worker->gpu(), number_, settings_);
  return latest_;
}

Result<void> CudaBackend::can_make(const SampleFacts& facts, const Recipe& recipe) const {
  return cuda_can_make(facts, recipe, staging_);
}

void CudaBackend::shutdown() {
  lanes_.shutdown([this] {
    device_->stop();
    if (memory_) memory_->stop();
  });
}

}  // namespace millrace
