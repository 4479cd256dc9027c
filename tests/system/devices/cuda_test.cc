// A daemon with GPUs, which the simulated driver makes up: the same pixels as without, whatever becomes of the GPU and of
// the process that owns it, and nothing left behind.
#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <map>
#include <set>

#include "tests/support/cuda_driver/uuid.h"
#include "tests/support/host/decoder_processes.h"
#include "tests/support/host/eventually.h"
#include "tests/support/host/temp_folder.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/support/pictures/test_images.h"
#include "tests/support/skip.h"
#include "tests/system/support/daemon.h"
#include "tests/system/support/need.h"
#include "tests/system/support/operator.h"

namespace millrace {
namespace {

constexpr std::uint32_t kImages = 48, kBatch = 8;
const std::string kSmall = "staging = \"32 MiB\"\nmemory = \"256 MiB\"\n";

using Environment = std::vector<std::pair<std::string, std::string>>;

// Baseline JPEG files, which are all for the GPU.
std::vector<std::string> write_jpegs(const TempFolder& folder) {
  std::vector<std::string> paths;
  for (std::uint32_t i = 0; i < kImages; ++i) {
    paths.push_back(folder / ("image_" + std::to_string(100 + i) + ".jpg"));
    write_file(paths.back(), make_jpeg({.pixels = make_pixels(60 + 7 * (i % 9), 50 + 11 * (i % 7), 3, i)}));
  }
  return paths;
}

// Some of them, and a daemon with GPUs.
struct Mill {
  explicit Mill(Environment env = {}, const std::string& cuda = kSmall)
      : paths(write_jpegs(folder)),
        daemon({.roots = {folder.path()},
                .cache = "memory = 0\n",
                .cuda = "yes",
                .cuda_settings = cuda,
                .env = std::move(env)}) {}

  std::vector<pid_t> workers() const { return child_processes(daemon.pid(), "millrace-cuda"); }

  // Whether the first GPU is ready.
  bool is_ready() const {
    const std::vector<Device> devices = need(daemon.connect().devices());
    const auto gpu =
        std::find_if(devices.begin(), devices.end(), [](const Device& d) { return d.backend == "cuda:0"; });
    return gpu != devices.end() && gpu->ready;
  }

  TempFolder folder;
  std::vector<std::string> paths;
  Daemon daemon;
};

// What one epoch came to.
struct Made {
  std::map<std::uint64_t, std::vector<std::byte>> tensors;  // by sample
  std::map<std::string, int> by_backend;
  std::vector<std::string> errors;
};

Made run_epoch(const Mill& mill, const std::string& backend, const std::function<void()>& between = {},
               const Recipe& recipe = Recipe::train(40), std::uint32_t size = kBatch) {
  Session session = need(mill.daemon.connect().open_session({.slots = 2, .batch = size, .recipe = recipe}));
  const Dataset dataset = need(session.open_dataset(mill.folder.path()));
  Made made;
  Epoch epoch = session.epoch(dataset, {.batch = size, .seed = 3, .backend = backend});
  for (Batch& batch : epoch) {
    for (const SampleError& error : batch.errors) made.errors.push_back(error.error.message);
    for (std::size_t i = 0; i < batch.tensor.samples(); ++i) {
      std::vector<std::byte>& made_of_it = made.tensors[batch.tensor.sample(i).id];
      if (recipe.views.empty()) {
        const auto pixels = batch.tensor.pixels(i);
        made_of_it.assign(pixels.begin(), pixels.end());
      } else {
        made_of_it.assign(batch.tensor.data().begin(), batch.tensor.data().end());
      }
      ++made.by_backend[batch.tensor.sample(i).backend];
    }
    batch.tensor = {};
    if (between) between();
  }
  if (!epoch.result()) made.errors.push_back(epoch.result().error().message);
  return made;
}

// The daemon's own words when it does not start.
std::string refusal(const DaemonSpec& spec) {
  try {
    const Daemon daemon(spec);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "it started";
}

}  // namespace

TEST_CASE("GPUs make the processor's pixels, bit by bit", "[system][cuda][gpu]") {
  if (skips_without_gpu_kernels()) return;
  const Mill mill;

  const Made gpu = run_epoch(mill, ""), cpu = run_epoch(mill, "cpu");

  REQUIRE(gpu.errors.empty());
  REQUIRE(gpu.by_backend == std::map<std::string, int>{{"cuda:0", kImages}});
  REQUIRE(cpu.by_backend == std::map<std::string, int>{{"cpu", kImages}});
  REQUIRE(gpu.tensors.size() == kImages);
  REQUIRE(gpu.tensors == cpu.tensors);
}

TEST_CASE("a killed owner of a GPU costs no sample, and another one takes its place", "[system][cuda][gpu]") {
  if (skips_without_gpu_kernels()) return;
  const Mill mill;
  const Made expected = run_epoch(mill, "cpu");
  const std::vector<pid_t> before = mill.workers();
  REQUIRE(before.size() == 1);
  int batches = 0;

  const Made made = run_epoch(mill, "", [&] {
    if (++batches == 2) ::kill(before[0], SIGKILL);
  });

  REQUIRE(made.errors.empty());
  REQUIRE(made.tensors == expected.tensors);
  REQUIRE(made.by_backend.at("cpu") > 0);
  REQUIRE(eventually([&] { return mill.is_ready(); }));
  REQUIRE(mill.workers().size() == 1);
  REQUIRE(mill.workers() != before);
  REQUIRE(run_epoch(mill, "").by_backend == std::map<std::string, int>{{"cuda:0", kImages}});
}

TEST_CASE("a context that breaks, and a GPU that hangs, cost no sample", "[system][cuda]") {
  if (skips_without_gpu_kernels()) return;
  const auto [faults, told] = GENERATE(table<std::string, std::string>({
      {"launch:millrace_reconstruct:2=700", "700"},
      {"copy:DtoH:2=214", "214"},
      {"launch:millrace_tokenise:2=hang", "does not answer within 500 ms"},
      // In the middle of pairs: two batches at once.
      {"launch:millrace_tokenise:2=hang;launch:millrace_tokenise:3=hang", "does not answer within 500 ms"},
  }));
  CAPTURE(faults);
  const bool hangs = faults.ends_with("hang");  // the others would be late, not wrong, on a host that is busy
  const Mill mill({{"SIM_CUDA_FAULTS", faults}}, kSmall + (hangs ? "hang_milliseconds = 500\n" : ""));
  const Made expected = run_epoch(mill, "cpu");

  const Made made = run_epoch(mill, "");

  REQUIRE(made.errors.empty());
  REQUIRE(made.tensors == expected.tensors);
  REQUIRE(made.by_backend.at("cpu") > 0);
  REQUIRE(logs(mill.daemon, told));
  REQUIRE(eventually([&] { return mill.is_ready(); }));  // which fails in the same way, and comes back again
  REQUIRE(run_epoch(mill, "").tensors == expected.tensors);
}

TEST_CASE("a GPU without memory left makes what fits, and the processor the rest", "[system][cuda]") {
  if (skips_without_gpu_kernels()) return;
  const std::size_t kind = GENERATE(0, 1, 2, 3);
  const Environment env[] = {{{"SIM_CUDA_FAULTS", "alloc:*:1=2"}},  // half as much is free, then
                             {{"SIM_CUDA_VRAM_MIB", "310"}},        // of which a context takes 256
                             {{"SIM_CUDA_VRAM_MIB", "256"}},
                             {}};
  const std::string small = "staging = \"16 MiB\"\nmemory = \"128 MiB\"\nlanes = 4\n";
  const Mill mill(env[kind], kind == 3 ? small : kSmall);
  const Made expected = run_epoch(mill, "cpu");

  const Made made = run_epoch(mill, "");

  REQUIRE(made.errors.empty());
  REQUIRE(made.tensors == expected.tensors);
  REQUIRE(mill.is_ready());  // out of memory is no reason to lose it
}

TEST_CASE("what a GPU has and leaves to the processor is counted", "[system][cuda]") {
  if (skips_without_gpu_kernels()) return;
  Recipe view = Recipe::train(1'000), noise = Recipe::train(40).normalised(DType::kFloat32);
  view.steps = {{.kind = steps::Simple::kInvert}};
  noise.erasing = Erasing{.probability = 0.5F, .noise = Erasing::Noise::kPixel};
  // Four views of one image, their pictures and the steps' memory, take more than the GPU gives to a lane.
  const std::string small = "staging = \"256 MiB\"\nmemory = \"128 MiB\"\nlanes = 4\n";
  for (const Recipe& recipe : {Recipe::of_views({view, view, view, view}), noise}) {
    const Mill mill({}, small);
    const std::uint32_t batch = recipe.views.empty() ? kBatch : 1;
    CAPTURE(batch);

    const Made made = run_epoch(mill, "", {}, recipe, batch);

    REQUIRE(made.errors.empty());
    const int left = made.by_backend.at("cpu"),
              by_gpu = made.by_backend.contains("cuda:0") ? made.by_backend.at("cuda:0") : 0;
    REQUIRE((recipe.views.empty() ? by_gpu > 0 && left > 0 : left == static_cast<int>(kImages)));
    REQUIRE(mill.daemon.metric("millrace_samples_left_total") == left);
    REQUIRE(made.tensors == run_epoch(mill, "cpu", {}, recipe, batch).tensors);
    REQUIRE(mill.is_ready());
  }
}

TEST_CASE("several GPUs share the work, and one that is lost leaves it to the others", "[system][cuda]") {
  if (skips_without_gpu_kernels()) return;
  const Mill mill(Environment{{"SIM_CUDA_DEVICES", "3"}});
  REQUIRE(mill.workers().size() == 3);
  const Made expected = run_epoch(mill, "cpu");

  const Made all = run_epoch(mill, "");
  for (const pid_t worker : mill.workers()) ::kill(worker, SIGKILL);
  const Made none = run_epoch(mill, "");

  REQUIRE(all.by_backend.size() == 3);
  for (const auto& [backend, images] : all.by_backend) REQUIRE(images >= static_cast<int>(kImages / 4));
  REQUIRE(all.tensors == expected.tensors);
  REQUIRE(none.errors.empty());
  REQUIRE(none.tensors == expected.tensors);
}

TEST_CASE("a pin on a type of GPU is as good as one on a GPU", "[system][cuda]") {
  if (skips_without_gpu_kernels()) return;
  const Mill mill({{"SIM_CUDA_DEVICES", "2"}}, kSmall + "devices = [\"1\"]\n");

  REQUIRE(run_epoch(mill, "cuda").by_backend == std::map<std::string, int>{{"cuda:0", kImages}});
  REQUIRE(mill.workers().size() == 1);
}

TEST_CASE("whatever becomes of the daemon, the owners of its GPUs end with it", "[system][cuda][gpu]") {
  if (skips_without_gpu_kernels()) return;
  const int signal = GENERATE(SIGKILL, SIGTERM);
  const Mill mill(Environment{{"SIM_CUDA_DEVICES", "2"}});
  const std::vector<pid_t> workers = mill.workers();
  REQUIRE(workers.size() + 1 == need(mill.daemon.connect().devices()).size());  // one a GPU; the processor is the other
  REQUIRE_FALSE(workers.empty());

  mill.daemon.kill(signal);

  REQUIRE(mill.daemon.wait());
  const auto is_gone = [](pid_t worker) {
    const std::string state = status_line(worker, "State");
    return state.empty() || state.starts_with("Z");  // of which the machine's first process takes note
  };
  REQUIRE(eventually([&] { return std::all_of(workers.begin(), workers.end(), is_gone); }));
}

TEST_CASE("a daemon says why it has no GPU, and goes without one where that is allowed", "[system][cuda]") {
  if (skips_without_gpu_kernels()) return;
  const TempFolder folder;
  DaemonSpec spec{.roots = {folder.path()}, .cuda = "yes", .cuda_settings = kSmall};

  SECTION("there is no driver") {
    spec.env = {{"LD_LIBRARY_PATH", ""}};
    REQUIRE_THAT(refusal(spec), Catch::Contains("backends.cuda") && Catch::Contains("libcuda.so.1"));
  }
  SECTION("it is too old for the kernels") {
    spec.env = {{"SIM_CUDA_CAPABILITY", "75"}};
    REQUIRE_THAT(refusal(spec), Catch::Contains("backends.cuda") && Catch::Contains("7.5"));
  }
  SECTION("its driver is, which would have to compile them") {
    spec.env = {{"SIM_CUDA_CAPABILITY", "120"}, {"SIM_CUDA_DRIVER_VERSION", "12090"}};
    REQUIRE_THAT(refusal(spec), Catch::Contains("a driver of version 580 or newer; this one's CUDA version is 12.9"));
  }
  SECTION("another GPU is named") {
    spec.cuda_settings += "devices = [\"GPU-00000000-0000-0000-0000-000000000000\"]\n";
    REQUIRE_THAT(refusal(spec), Catch::Contains("cuda.devices") && Catch::Contains(sim::uuid_text(0)));
  }
  SECTION("the program that owns it is not there") {
    spec.cuda_settings += "worker = \"/nonexistent/millrace-cuda\"\n";
    REQUIRE_THAT(refusal(spec), Catch::Contains("/nonexistent/millrace-cuda"));
  }
  const std::string settings = spec.cuda_settings;
  spec.cuda = "auto";
  if (settings != kSmall) return;  // a GPU that is named has to be there
  const Daemon daemon(spec);
  REQUIRE(need(daemon.connect().devices()).size() == 1);
  REQUIRE(logs(daemon, "backends.cuda"));
}

}  // namespace millrace
