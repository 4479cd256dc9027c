// What the CUDA backend does when a GPU, its memory or the process that owns it fails, on the simulated driver: pixels
// stay those of the processor, and nothing waits for ever. Conformance has what every backend does.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <thread>

#include "daemon/backend/cuda/cuda_order.h"
#include "tests/support/host/decoder_processes.h"
#include "tests/support/host/eventually.h"
#include "tests/support/skip.h"
#include "tests/unit/daemon/backend/cuda/cuda_rig.h"

namespace millrace {
namespace {

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
  const Images files = jpegs(140, 1, 30);

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

}  // namespace millrace
