// What the CUDA backend does when a GPU, its memory or the process that owns it fails, on the simulated driver: pixels
// stay those of the processor, and nothing waits for ever. Conformance has what every backend does.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <thread>

#include "daemon/backend/cpu/cpu_backend.h"
#include "daemon/backend/cuda/cuda_backend.h"
#include "daemon/backend/cuda/cuda_lane.h"
#include "daemon/formats/probe.h"
#include "tests/conformance/bench_of_backend.h"
#include "tests/support/cuda_driver/uuid.h"
#include "tests/support/host/decoder_processes.h"
#include "tests/support/host/eventually.h"
#include "tests/support/host/process.h"
#include "tests/support/host/temp_folder.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/support/pictures/test_images.h"
#include "tests/support/skip.h"

namespace millrace {
namespace {

using Variables = std::vector<std::pair<std::string, std::string>>;
using Images = std::vector<std::vector<std::byte>>;

// The simulated driver of processes that are started while it lives.
class Driver {
 public:
  explicit Driver(const Variables& settings) {
    for (const auto& [name, value] : settings) {
      ::setenv(name.c_str(), value.c_str(), 1);
      names_.push_back(name);
    }
  }
  ~Driver() {
    for (const std::string& name : names_) ::unsetenv(name.c_str());
  }
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

 private:
  std::vector<std::string> names_;
};

CudaSettings small_settings() {
  return {.wanted = Wanted::kYes,
          .lanes = 1,
          .memory = 128_MiB,
          .staging = 32_MiB,
          .worker = bin_folder() + "/millrace-cuda"};
}

Result<std::vector<std::unique_ptr<Backend>>> make(const CudaSettings& cuda) {
  Settings settings;
  settings.groups.of<CudaSettings>() = cuda;
  return make_cuda_backends(settings, {});
}

std::unique_ptr<Backend> start_gpu(const CudaSettings& cuda = small_settings()) {
  auto backends = make(cuda);
  if (!backends) FAIL(backends.error().message);
  REQUIRE(backends->size() == 1);
  return std::move(backends->front());
}

pid_t gpu_process() {
  const std::vector<pid_t> owners = child_processes(::getpid(), "millrace-cuda");
  REQUIRE(owners.size() == 1);
  return owners[0];
}

// With Huffman tables of its own, each.
Images jpegs(std::uint32_t count, std::uint32_t seed, std::uint32_t side = 90) {
  Images images;
  for (std::uint32_t i = 0; i < count; ++i)
    images.push_back(make_jpeg({.pixels = make_pixels(side + 7 * i, side, 3, seed + i), .optimise = true}));
  return images;
}

struct Came {
  std::vector<std::vector<std::byte>> tensors;  // empty: none
  std::vector<Code> codes;                      // of those without
};

Came make(Backend& backend, const Images& images, Size output) {
  JobOnTheBench bench;
  for (const auto& bytes : images) {
    const Result<SourceInfo> info = probe_image(bytes, SampleLimits{}, UseOrientation::kYes);
    REQUIRE(info);
    EncodedImage image = encoded(bytes, info->format, info->stored);
    const SampleGeometry geometry = resized_whole(image, output);
    bench.add(std::move(image), geometry);
  }
  Collector collector;
  REQUIRE(backend.try_submit(bench.job(collector)));
  const Finished finished = collector.wait_for_one();
  Came came;
  for (std::size_t i = 0; i < images.size(); ++i) {
    const auto& error = finished.outcomes[i].error;
    if (error) came.codes.push_back(error->code);
    came.tensors.push_back(error ? std::vector<std::byte>() : bench.tensors[i]->copy());
  }
  return came;
}

Came on_the_processor(const Images& images, Size output) {
  CpuSettings settings;
  settings.lanes = 1;
  auto backend = CpuBackend::create(settings);
  REQUIRE(backend);
  return make(**backend, images, output);
}

// How many tensors are there; those that are have to be the processor's.
std::size_t count_right(const Came& came, const Came& expected) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < came.tensors.size(); ++i) {
    if (came.tensors[i].empty()) continue;
    REQUIRE(came.tensors[i] == expected.tensors[i]);
    ++count;
  }
  return count;
}

// Its header has a restart interval, and there are no restart markers.
std::vector<std::byte> without_its_markers(std::uint32_t seed) {
  std::vector<std::byte> file = jpegs(1, seed)[0];
  const std::byte start_of_scan[] = {std::byte{0xFF}, std::byte{0xDA}};
  const std::byte interval[] = {std::byte{0xFF}, std::byte{0xDD}, std::byte{0},
                                std::byte{4},    std::byte{0},    std::byte{1}};
  const auto at = std::search(file.begin(), file.end(), std::begin(start_of_scan), std::end(start_of_scan));
  file.insert(at, std::begin(interval), std::end(interval));
  return file;
}

// In the place of millrace-cuda: it does what that does for the list and for the first owner; what comes next hangs.
std::string hangs_at_the_third(const TempFolder& folder) {
  const std::string program = folder / "millrace-cuda", began = folder / "began";
  write_file(program, "#!/bin/sh\nread -r times < " + began + "\necho $((times + 1)) > " + began +
                          "\n[ $times -lt 2 ] && exec " + bin_folder() + "/millrace-cuda\nexec sleep 1000\n");
  write_file(began, std::string("0\n"));
  REQUIRE(::chmod(program.c_str(), 0755) == 0);
  return program;
}

constexpr Size kA{40, 40}, kB{48, 48}, kC{56, 56};

}  // namespace

TEST_CASE("a recipe of indices is the CPU's to refuse of a JPEG", "[cuda]") {
  if (skips_without_gpu_kernels()) return;
  const SourceInfo source{.format = ImageFormat::kJpeg, .stored = {8, 8}};
  const SampleGeometry geometry{.crop = {0, 0, 8, 8}, .resized = {8, 8}, .window = {0, 0, 8, 8}};
  const CudaStaging staging{.encoded_bytes = 1 << 20, .tensor_bytes = 1 << 20};
  Recipe recipe{.filter = Filter::kNearest, .channels = Channels::kGrey};
  REQUIRE(cuda_can_make({source, geometry}, recipe, staging));

  recipe.indices = true;

  REQUIRE(cuda_can_make({source, geometry}, recipe, staging).error().message == "the GPU reads no indices");
}

TEST_CASE("a file that is refused after its tables were planned leaves others their own", "[cuda]") {
  if (skips_without_gpu_kernels()) return;
  const std::unique_ptr<Backend> gpu = start_gpu();
  const Images files = jpegs(6, 1), others = jpegs(2, 100);
  const Came expected = on_the_processor(files, kB);
  static_cast<void>(make(*gpu, others, kA));  // tables of another planner where those of the next one will be
  static_cast<void>(make(*gpu, others, kC));

  const Came refused = make(*gpu, {without_its_markers(1)}, kB);

  REQUIRE(refused.codes == std::vector{Code::kUnsupported});
  REQUIRE(count_right(make(*gpu, files, kB), expected) == files.size());
}

TEST_CASE("a batch that does not fit the GPU's memory leaves other recipes their tables", "[cuda]") {
  if (skips_without_gpu_kernels()) return;
  CudaSettings settings = small_settings();
  settings.staging = 64_MiB;
  const Driver driver(Variables{{"SIM_CUDA_VRAM_MIB", "300"}});  // of which a context takes 256
  const std::unique_ptr<Backend> gpu = start_gpu(settings);
  const Images files = jpegs(6, 1), more = jpegs(6, 50), large = jpegs(1, 7, 4'000);
  const Came expected = on_the_processor(files, kB), expected_more = on_the_processor(more, kA);
  static_cast<void>(make(*gpu, {more[0]}, kA));
  REQUIRE(count_right(make(*gpu, files, kB), expected) == files.size());

  const Came too_much = make(*gpu, large, kA);

  REQUIRE(too_much.codes == std::vector{Code::kUnsupported});
  REQUIRE(count_right(make(*gpu, more, kA), expected_more) == more.size());
  REQUIRE(count_right(make(*gpu, files, kB), expected) == files.size());
}

TEST_CASE("a batch on as many multiprocessors as a large GPU has is the processor's", "[cuda]") {
  if (skips_without_gpu_kernels()) return;
  // A thread block for each image, where the usual simulated device has 28 of them: scratch for them all is needed.
  const Driver driver(Variables{{"SIM_CUDA_MULTIPROCESSORS", "132"}});
  CudaSettings settings = small_settings();
  settings.memory = 256_MiB;
  const std::unique_ptr<Backend> gpu = start_gpu(settings);
  const Images files = jpegs(200, 1, 30);

  REQUIRE(count_right(make(*gpu, files, kA), on_the_processor(files, kA)) == files.size());

  gpu->shutdown();
}

TEST_CASE("a launch that finds no memory is waited for, and tried again with less", "[cuda]") {
  if (skips_without_gpu_kernels()) return;
  const Images files = jpegs(16, 1);
  const Came expected = on_the_processor(files, kB);
  for (const char* const seed : {"1", "2", "3"}) {
    const Driver driver(
        Variables{{"SIM_CUDA_FAULTS", "launch:millrace_reconstruct:2=2;copy:DtoH:3=2;launch:millrace_tokenise:5=2"},
                  {"SIM_CUDA_DELAY_US", "3000"},
                  {"SIM_CUDA_SEED", seed}});
    const std::unique_ptr<Backend> gpu = start_gpu();
    HealthOnTheBench health;
    gpu->listen(health.listener());

    for (int round = 0; round < 3; ++round) REQUIRE(count_right(make(*gpu, files, kB), expected) == files.size());

    REQUIRE(health.told().empty());
    gpu->shutdown();
  }
}

TEST_CASE("an owner that ends while nobody asks it is noticed, said why, and replaced", "[cuda]") {
  if (skips_without_gpu_kernels()) return;
  const std::unique_ptr<Backend> gpu = start_gpu();
  HealthOnTheBench health;
  gpu->listen(health.listener());
  const pid_t before = gpu_process();

  ::kill(before, SIGTERM);

  REQUIRE(eventually([&] { return health.told().size() == 2; }));
  REQUIRE(health.told()[0].state == Health::State::kLost);
  REQUIRE_THAT(health.told()[0].why, Catch::Contains("of signal 15"));
  REQUIRE(health.told()[1].state == Health::State::kReady);
  REQUIRE(gpu_process() != before);
  const Images files = jpegs(4, 1);
  REQUIRE(count_right(make(*gpu, files, kB), on_the_processor(files, kB)) == files.size());
  gpu->shutdown();
}

TEST_CASE("an owner cannot take the staging away from under the daemon", "[cuda]") {
  if (skips_without_gpu_kernels()) return;
  const std::unique_ptr<Backend> gpu = start_gpu();
  const std::string staging = "/proc/" + std::to_string(gpu_process()) + "/fd/" + std::to_string(cuda_lane_staging(0));

  REQUIRE(::truncate(staging.c_str(), 0) == -1);

  REQUIRE(errno == EPERM);
  const Images files = jpegs(4, 1);
  REQUIRE(count_right(make(*gpu, files, kB), on_the_processor(files, kB)) == files.size());
}

TEST_CASE("nobody waits for a GPU that hangs while its owner begins, or in a batch, once the daemon ends", "[cuda]") {
  if (skips_without_gpu_kernels()) return;
  const TempFolder folder;
  const std::string began = folder / "began", program = hangs_at_the_third(folder);
  CudaSettings settings = small_settings();
  settings.worker = program;
  settings.hang = std::chrono::minutes(5);
  bool in_a_batch = false;
  SECTION("while its owner begins") {}
  SECTION("in a batch") {
    in_a_batch = true;
  }
  const Driver driver(Variables{{"SIM_CUDA_FAULTS", in_a_batch ? "launch:millrace_tokenise:1=hang" : ""}});
  const std::unique_ptr<Backend> gpu = start_gpu(settings);
  JobOnTheBench bench = std::move(small_jobs(1, 3)[0]);
  Collector collector;
  if (in_a_batch) {
    REQUIRE(gpu->try_submit(bench.job(collector)));
    std::this_thread::sleep_for(std::chrono::milliseconds(500));  // where it is too short nothing hangs
  } else {
    ::kill(gpu_process(), SIGKILL);
    REQUIRE(eventually([&] {
      const std::vector<std::byte> times = read_file(began);
      return !times.empty() && times[0] == std::byte{'3'};
    }));
  }
  const auto begun = std::chrono::steady_clock::now();

  gpu->shutdown();

  REQUIRE(std::chrono::steady_clock::now() - begun < std::chrono::minutes(1));  // an end, and not how fast
  if (!in_a_batch) return;
  for (const SampleOutcome& outcome : collector.wait_for_one().outcomes)
    REQUIRE((outcome.error->code == Code::kUnavailable || outcome.error->code == Code::kCancelled));
}

TEST_CASE("a list of GPUs that breaks off is none", "[cuda]") {
  if (skips_without_gpu_kernels()) return;
  CudaSettings settings = small_settings();
  settings.worker = "/bin/true";

  const auto made = make(settings);

  REQUIRE_FALSE(made);
  REQUIRE_THAT(made.error().message, Catch::Contains("ended"));
}

TEST_CASE("a GPU that is lost when the daemon starts leaves the others alone, and is taken up when it is back",
          "[cuda]") {
  if (skips_without_gpu_kernels()) return;
  const TempFolder folder;
  const Driver driver(Variables{{"SIM_CUDA_DEVICES", "2"}, {"SIM_CUDA_CONTROL", folder / "control"}});
  const auto lose = [](const std::string& result) {
    REQUIRE(Process::spawn({.argv = {tests_folder() + "/millrace_cuda_sim", "lose", "1", result}}).wait() == 0);
  };
  lose("999");

  auto backends = make(small_settings());

  REQUIRE(backends);
  REQUIRE(backends->size() == 2);
  HealthOnTheBench first, second;
  (*backends)[0]->listen(first.listener());
  (*backends)[1]->listen(second.listener());
  REQUIRE(first.told().empty());
  REQUIRE(second.told().size() == 1);
  lose("0");
  REQUIRE(eventually([&] { return second.told().size() == 2; }));
  for (const auto& backend : *backends) backend->shutdown();
}

TEST_CASE("where CUDA is not ready as the daemon starts, the kernel's GPUs stand in for its own", "[cuda]") {
  if (skips_without_gpu_kernels()) return;
  const TempFolder kernel;
  const std::string uuid = start_gpu()->info().properties[0].second;
  std::filesystem::create_directories(kernel / "0000:1b:00.0");
  write_file(kernel / "0000:1b:00.0/information", "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 33\nGPU UUID: \t " +
                                                      uuid + "\nBus Location: \t 0000:1b:00.0\n");
  std::filesystem::create_directories(kernel / "0000:43:00.0");  // which has not begun
  write_file(kernel / "0000:43:00.0/information", "GPU UUID: \t GPU-" + std::string(36, '?') + "\n");
  CudaSettings settings = small_settings();
  settings.kernel_gpus = kernel.path();
  auto not_ready = std::make_optional<Driver>(Variables{{"SIM_CUDA_FAULTS", "init:*:1=802"}});
  const auto refused = make(settings);
  REQUIRE_FALSE(refused);
  CHECK_THAT(refused.error().message, Catch::Contains("nvidia-fabricmanager has to run"));
  settings.wanted = Wanted::kAuto;

  auto backends = make(settings);

  REQUIRE(backends);
  REQUIRE(backends->size() == 1);
  Backend& gpu = *backends->front();
  HealthOnTheBench health;
  gpu.listen(health.listener());
  CHECK(health.told().back().state == Health::State::kLost);
  CHECK(gpu.info().device == "NVIDIA H100 80GB HBM3");
  not_ready.reset();
  REQUIRE(eventually([&] { return health.told().back().state == Health::State::kReady; }));
  CHECK_THAT(gpu.info().detail, Catch::Contains("compute capability 9.0"));
  const Images files = jpegs(4, 1);
  CHECK(count_right(make(gpu, files, kB), on_the_processor(files, kB)) == files.size());
  gpu.shutdown();
}

TEST_CASE("where CUDA is not ready and the kernel knows no GPU there is none", "[cuda]") {
  if (skips_without_gpu_kernels()) return;
  const TempFolder kernel;
  CudaSettings settings = small_settings();
  settings.kernel_gpus = kernel / "none";
  settings.wanted = Wanted::kAuto;
  const Driver driver(Variables{{"SIM_CUDA_FAULTS", "init:*:1=999"}});

  const auto backends = make(settings);

  REQUIRE(backends);
  CHECK(backends->empty());
}

TEST_CASE("a GPU that nobody wants rests without a process, stays ready, and makes the next image", "[cuda]") {
  if (skips_without_gpu_kernels()) return;
  CudaSettings settings = small_settings();
  settings.rest = std::chrono::milliseconds(200);
  const std::unique_ptr<Backend> gpu = start_gpu(settings);
  HealthOnTheBench health;
  gpu->listen(health.listener());
  const Images files = jpegs(4, 1);
  const Came expected = on_the_processor(files, kB);
  for (int round = 0; round < 3; ++round) {
    REQUIRE(eventually([&] { return child_processes(::getpid(), "millrace-cuda").empty(); }));

    REQUIRE(count_right(make(*gpu, files, kB), expected) == files.size());
  }

  CHECK(health.told().empty());
  gpu->shutdown();
}

TEST_CASE("a GPU that rests and cannot be had again is lost, and taken up when it can", "[cuda]") {
  if (skips_without_gpu_kernels()) return;
  CudaSettings settings = small_settings();
  settings.rest = std::chrono::milliseconds(200);
  const std::unique_ptr<Backend> gpu = start_gpu(settings);
  HealthOnTheBench health;
  gpu->listen(health.listener());
  const Images files = jpegs(4, 1);
  REQUIRE(eventually([&] { return child_processes(::getpid(), "millrace-cuda").empty(); }));
  auto not_there = std::make_optional<Driver>(Variables{{"SIM_CUDA_FAULTS", "init:*:1=999"}});

  REQUIRE(make(*gpu, files, kB).codes == std::vector(files.size(), Code::kUnavailable));

  REQUIRE(health.told().size() == 1);
  REQUIRE(health.told()[0].state == Health::State::kLost);
  not_there.reset();
  REQUIRE(eventually([&] { return health.told().size() == 2; }));
  REQUIRE(count_right(make(*gpu, files, kB), on_the_processor(files, kB)) == files.size());
  gpu->shutdown();
}

TEST_CASE("a GPU that rests and does not come up in time is lost", "[cuda]") {
  if (skips_without_gpu_kernels()) return;
  const TempFolder folder;
  CudaSettings settings = small_settings();
  settings.worker = hangs_at_the_third(folder);
  settings.rest = std::chrono::milliseconds(200);
  settings.hang = std::chrono::milliseconds(500);
  const std::unique_ptr<Backend> gpu = start_gpu(settings);
  HealthOnTheBench health;
  gpu->listen(health.listener());
  REQUIRE(eventually([&] { return child_processes(::getpid(), "millrace-cuda").empty(); }));

  for (int round = 0; round < 2; ++round) REQUIRE(make(*gpu, jpegs(1, 1), kB).codes == std::vector{Code::kUnavailable});

  REQUIRE(health.told().size() == 1);
  REQUIRE_THAT(health.told()[0].why, Catch::Contains("has not come up within 500 ms"));
  gpu->shutdown();
}

TEST_CASE("a GPU is not named twice", "[cuda]") {
  if (skips_without_gpu_kernels()) return;
  CudaSettings settings = small_settings();
  settings.devices = {"0", "gpu" + sim::uuid_text(0).substr(3)};

  const auto made = make(settings);

  REQUIRE_FALSE(made);
  REQUIRE_THAT(made.error().message, Catch::Contains("named twice"));
}

}  // namespace millrace
