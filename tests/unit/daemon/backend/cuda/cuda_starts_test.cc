// Which GPUs the CUDA backend begins with, also where CUDA is not ready; and a GPU that rests. On the simulated driver.
#include <unistd.h>

#include <filesystem>
#include <optional>

#include "tests/support/cuda_driver/uuid.h"
#include "tests/support/host/decoder_processes.h"
#include "tests/support/host/eventually.h"
#include "tests/support/host/process.h"
#include "tests/support/skip.h"
#include "tests/unit/daemon/backend/cuda/cuda_rig.h"

namespace millrace {

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
