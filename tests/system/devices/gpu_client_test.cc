// libmillrace with its tensors in a GPU's memory: what a consumer reads there, when slots go back, and what is refused. On
// the simulated driver, which this process uses as a consumer's would.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <future>
#include <thread>

#include "millrace/client.h"
#include "proto/cuda/driver.h"
#include "tests/support/host/decoder_processes.h"
#include "tests/support/host/eventually.h"
#include "tests/support/host/temp_folder.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/support/pictures/test_images.h"
#include "tests/support/skip.h"
#include "tests/system/devices/gpu_client_mill.h"
#include "tests/system/devices/held_stream.h"
#include "tests/system/support/command.h"
#include "tests/system/support/daemon.h"
#include "tests/system/support/need.h"

namespace millrace {
namespace {

using Words = HeldStream::Words;

constexpr uid_t kOther = 64'001;

}  // namespace

TEST_CASE("libmillrace reads on a GPU what it reads on the host", "[system][cuda][gpu]") {
  if (skips_without_gpu_kernels()) return;
  const GpuClientMill mill;
  Session host = mill.open("host"), gpu = mill.open("cuda:0");
  REQUIRE(gpu.slot_bytes() == host.slot_bytes());

  for (std::size_t first = 0; first < 16; first += 4) {
    const Batch here = need(host.wait(mill.ask(host, first, 4))), there = need(gpu.wait(mill.ask(gpu, first, 4)));
    const TensorView &expected = here.tensor, &found = there.tensor;
    REQUIRE(found.samples() == 4);
    REQUIRE(found.size() == expected.size());
    REQUIRE(found.data().empty());
    REQUIRE(found.pixels(1).empty());
    REQUIRE(found.as<std::uint8_t>().error().code == Code::kPrecondition);
    REQUIRE(found.device() == 0);
    REQUIRE_FALSE(expected.device());
    REQUIRE(expected.device_data().size.count == 0);
    const Words bytes = need(found.copy());
    REQUIRE(bytes == need(expected.copy()));
    REQUIRE(std::equal(bytes.begin(), bytes.end(), expected.data().begin(), expected.data().end()));
    REQUIRE(std::equal(found.shape().begin(), found.shape().end(), expected.shape().begin(), expected.shape().end()));
    REQUIRE(found.labels() == expected.labels());
    for (std::size_t i = 0; i < 4; ++i) {
      const std::uint64_t at = found.device_pixels(i).address - found.device_data().address;
      REQUIRE(at == static_cast<std::uint64_t>(expected.pixels(i).data() - expected.data().data()));
      REQUIRE(found.device_pixels(i).size.count == expected.pixels(i).size());
    }
    REQUIRE(found.device_pixels(4).size.count == 0);
  }
}

TEST_CASE("the views of a sample are in a GPU's memory what they are on the host", "[system][cuda][gpu]") {
  if (skips_without_gpu_kernels()) return;
  const GpuClientMill mill;
  const Recipe small{.resize = ExactSize{{7, 5}}, .flip_probability = 0.5F};
  const Recipe recipe = Recipe::of_views({Recipe::train(24), Recipe::train(24), small});
  const auto open = [&](const std::string& memory) {
    return need(mill.daemon.connect().open_session({.slots = 2, .batch = 8, .recipe = recipe, .memory = memory}));
  };
  Session host = open("host"), gpu = open("cuda:0");

  const Batch here = need(host.wait(mill.ask(host, 0, 4))), there = need(gpu.wait(mill.ask(gpu, 0, 4)));

  const std::span<const ViewTensor> expected = here.tensor.views(), found = there.tensor.views();
  const Words bytes = need(there.tensor.copy());
  REQUIRE(found.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    REQUIRE(found[i].shape == expected[i].shape);
    REQUIRE(found[i].data.empty());
    REQUIRE(found[i].device_data.size.count == expected[i].data.size());
    const std::uint64_t at = found[i].device_data.address - there.tensor.device_data().address;
    REQUIRE(at % kPackedAlignment == 0);
    REQUIRE(
        std::equal(expected[i].data.begin(), expected[i].data.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at)));
  }
}

TEST_CASE("a batch of small images has room for its records on a GPU, too", "[system][cuda][gpu]") {
  if (skips_without_gpu_kernels()) return;
  const GpuClientMill mill;
  const auto open = [&](const std::string& memory) {
    return need(mill.daemon.connect().open_session(
        {.slots = 1, .batch = 24, .recipe = {.resize = ExactSize{{4, 4}}}, .memory = memory}));
  };
  Session host = open("host"), gpu = open("cuda:0");

  const Batch here = need(host.wait(mill.ask(host, 0, 24))), there = need(gpu.wait(mill.ask(gpu, 0, 24)));

  REQUIRE_FALSE(there.failure);
  REQUIRE(need(there.tensor.copy()) == need(here.tensor.copy()));
}

TEST_CASE("an epoch's batches lie on the GPU, each in its slot", "[system][cuda][gpu]") {
  if (skips_without_gpu_kernels()) return;
  const GpuClientMill mill;
  Session host = mill.open("host", 3), gpu = mill.open("cuda:0", 3);
  const Dataset here = need(host.open_dataset(mill.pictures)), there = need(gpu.open_dataset(mill.pictures));
  const EpochOptions options{.seed = 5, .shuffle = true};
  Epoch expected = host.epoch(here, options), found = gpu.epoch(there, options);
  std::size_t batches = 0;
  while (const std::optional<Batch> batch = need(found.next())) {
    const std::optional<Batch> other = need(expected.next());
    REQUIRE(other);
    REQUIRE(need(batch->tensor.copy()) == need(other->tensor.copy()));
    REQUIRE(batch->position == other->position);
    ++batches;
  }
  REQUIRE(batches == 3);
}

TEST_CASE("a slot goes back when the consumer's stream has done its work", "[system][cuda][gpu]") {
  if (skips_without_gpu_kernels()) return;
  const GpuClientMill mill;
  HeldStream busy, idle;
  Session session = mill.open("cuda:0", 1);
  Batch batch = mill.made(session, 1);
  const std::uint64_t address = batch.tensor.device_data().address;
  busy.hold();
  busy.fill(batch.tensor.device_data(), 0x5A);  // a late use, which the next batch may not meet
  for (void* const stream : {busy.handle(), idle.handle(), busy.handle()}) batch.tensor.used_by(stream);

  SECTION("and the next batch waits for it") {
    batch.tensor.release();
    const Ticket next = mill.ask(session, 2);
    REQUIRE(session.wait(next, std::chrono::milliseconds(300)).error().code == Code::kDeadline);
    busy.open();

    const Batch after = need(session.wait(next));

    REQUIRE(after.tensor.device_data().address == address);
    REQUIRE(need(after.tensor.copy()) == mill.expected(2));
  }
  SECTION("of the default stream, too") {
    Batch other = std::move(batch);
    other.tensor.used_by(nullptr);
    busy.open();
    other.tensor.release();

    REQUIRE(need(need(session.wait(mill.ask(session, 2))).tensor.copy()) == mill.expected(2));
  }
  SECTION("and a thread that waits already hears of it") {
    const Ticket next = mill.ask(session, 2);
    std::optional<Result<Batch>> after;
    std::thread waiting([&] { after = session.wait(next); });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    batch.tensor.release();
    busy.open();
    waiting.join();

    REQUIRE(need(need(*std::move(after)).tensor.copy()) == mill.expected(2));
  }
  SECTION("and a copy has it") {
    std::thread opening([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      busy.open();
    });
    const Words bytes = need(batch.tensor.copy());
    opening.join();

    REQUIRE(std::count(bytes.begin(), bytes.end(), std::byte{0x5A}) == static_cast<std::ptrdiff_t>(bytes.size()));
  }
}

TEST_CASE("a consumer captures a CUDA graph while another thread has tensors on the GPU", "[system][cuda][gpu]") {
  if (skips_without_gpu_kernels()) return;
  const GpuClientMill mill;
  HeldStream capturing, reading;
  std::optional<Session> session(mill.open("cuda:0", 1));
  capturing.begin_capture();

  std::async(std::launch::async, [&] {
    std::optional<Batch> batch(mill.made(*session, 1));
    batch->tensor.used_by(reading.handle());
    REQUIRE(need(batch->tensor.copy()) == mill.expected(1));
    batch.reset();
    REQUIRE(need(mill.made(*session, 2).tensor.copy()) == mill.expected(2));  // in the same slot
    session.reset();
    need(mill.made(session.emplace(mill.open("cuda:0", 1)), 3).tensor.copy());
    session.reset();
  }).get();

  REQUIRE(capturing.end_capture() == cuda::CUDA_SUCCESS);
}

TEST_CASE("a forked child may not read the GPU's memory and takes nothing from its parent", "[system][cuda][gpu]") {
  if (skips_without_gpu_kernels()) return;
  const GpuClientMill mill;
  HeldStream stream;
  Session session = mill.open("cuda:0", 1);
  std::optional<Batch> batch(mill.made(session, 1));

  const pid_t child = ::fork();
  if (child == 0) {
    const Result<Words> copied = batch->tensor.copy();
    batch->tensor.used_by(stream.handle());
    batch.reset();
    const bool is_refused = !copied && copied.error().code == Code::kPrecondition;
    ::_exit(is_refused ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);

  REQUIRE(status == 0);
  REQUIRE(need(batch->tensor.copy()) == mill.expected(1));
  batch.reset();
  REQUIRE(need(mill.made(session, 2).tensor.copy()) == mill.expected(2));
}

TEST_CASE("clients of other users and PID namespaces read their tensors on the GPU", "[system][cuda][gpu]") {
  if (skips_without_gpu_kernels()) return;
  if (!is_root()) return skip_loudly("clients of other users (needs root)");
  const GpuClientMill mill;
  const std::string expected = mill.daemon.run_client("gpu_read", {"host", mill.paths[3], mill.paths[4]});
  REQUIRE_THAT(expected, Catch::StartsWith("2 images: "));

  REQUIRE(mill.daemon.run_client("gpu_read", {"cuda:0", mill.paths[3], mill.paths[4]}, kOther) == expected);

  const std::string user = std::to_string(kOther);
  const Process apart =
      Process::spawn({.argv = {"unshare", "--pid", "--fork", "--mount-proc", "setpriv", "--reuid", user, "--regid",
                               user, "--clear-groups", mill.daemon.client_program(), "gpu_read", mill.daemon.socket(),
                               "cuda:0", mill.paths[3], mill.paths[4]}});
  REQUIRE(apart.wait() == 0);
  REQUIRE(apart.output() == expected);
}

TEST_CASE("what the daemon does not have, or this process does not see, is said", "[system][cuda]") {
  if (skips_without_gpu_kernels()) return;
  const GpuClientMill mill;
  const auto refused = [&](const std::string& memory, std::vector<std::pair<std::string, std::string>> env) {
    const Process client = Process::spawn(
        {.argv = {mill.daemon.client_program(), "gpu_read", mill.daemon.socket(), memory, mill.paths[0]}, .env = env});
    REQUIRE(client.wait());
    return client.output() + client.errors();
  };

  REQUIRE_THAT(refused("cuda:7", {}), Catch::Contains("NOT_FOUND") && Catch::Contains("this daemon has host, cuda:0"));
  REQUIRE_THAT(refused("cuda:0", {{"LD_LIBRARY_PATH", ""}}),
               Catch::Contains("UNIMPLEMENTED") && Catch::Contains("install NVIDIA's driver"));
  REQUIRE_THAT(
      refused("cuda:0", {{"SIM_CUDA_VMM", "0"}}),
      Catch::Contains("UNIMPLEMENTED") && Catch::Contains("no memory that is shared by descriptor: open the session"));
  REQUIRE(mill.daemon.metric("millrace_sessions_opened_total") == 0);  // refused before the daemon lends anything
}

TEST_CASE("the command line runs with its tensors on a GPU, and doctor says whether that goes", "[system][cuda][gpu]") {
  if (skips_without_gpu_kernels()) return;
  const GpuClientMill mill;
  const std::string& socket = mill.daemon.socket();

  const Ran on_gpu = run({"millrace", "run", "--socket", socket, "--dataset", mill.pictures, "--memory", "cuda:0",
                          "--slots", "2", "--batch", "7", "--json"});
  const Ran elsewhere = run({"millrace", "run", "--socket", socket, "--dataset", mill.pictures, "--memory", "cuda:1"});
  const Ran doctor = run({"millrace", "doctor", "--socket", socket});

  CAPTURE(on_gpu.errors, elsewhere.errors, doctor.output);
  REQUIRE(on_gpu.status == 0);
  REQUIRE(parsed(on_gpu.output).get<int>("images") == 24);
  REQUIRE(parsed(on_gpu.output).get<int>("tensor_bytes") == 24 * 224 * 224 * 3);
  REQUIRE(elsewhere.status == 1);
  REQUIRE_THAT(elsewhere.errors, Catch::Contains("this daemon has host, cuda:0"));
  REQUIRE(doctor.status == 0);
  REQUIRE_THAT(doctor.output,
               Catch::Contains("hand-over on cuda:0") && Catch::Contains("its memory on the GPU is mapped"));
}

TEST_CASE("doctor warns of GPUs whose compute mode keeps others out, and says how to change it", "[system][cuda]") {
  const auto doctor = [](const char* mode) {
    return run_program({bin_folder() + "/millrace", "doctor", "--socket", "/nowhere"},
                       {{"NO_COLOR", "1"}, {"SIM_CUDA_DEVICES", "2"}, {"SIM_CUDA_COMPUTE_MODE", mode}});
  };

  REQUIRE_THAT(doctor("0").output, !Catch::Contains("compute mode"));
  REQUIRE_THAT(doctor("2").output, Catch::Contains("GPU 0: PROHIBITED"));
  REQUIRE_THAT(doctor("3").output, Catch::Contains("GPU 0: EXCLUSIVE_PROCESS") &&
                                       Catch::Contains("GPU 1: EXCLUSIVE_PROCESS") &&
                                       Catch::Contains("nvidia-smi -i 1 -c DEFAULT"));
}

}  // namespace millrace
