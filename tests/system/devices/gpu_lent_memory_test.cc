// What becomes of a GPU's memory that a session was lent: when the session ends, its streams are gone, the GPU's owner
// dies, or nobody wants the GPU. On the simulated driver, which this process uses as a consumer's would.
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

using LentWords = HeldStream::Words;

}  // namespace

TEST_CASE("a GPU's memory outlives its session, until its last user has done", "[system][cuda][gpu]") {
  if (skips_without_gpu_kernels()) return;
  const GpuClientMill mill;
  HeldStream stream;
  std::optional<Session> session(mill.open("cuda:0"));
  Batch kept = mill.made(*session, 1), queued = mill.made(*session, 2);
  const std::uint64_t address = kept.tensor.device_data().address;

  session.reset();

  REQUIRE(need(kept.tensor.copy()) == mill.expected(1));
  stream.hold();
  queued.tensor.used_by(stream.handle());
  queued.tensor.release();
  std::atomic<bool> is_open = false;
  std::thread opening([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    is_open = true;
    stream.open();
  });
  REQUIRE(stream.is_mapped(address));
  kept.tensor.release();
  REQUIRE(is_open);  // it was not unmapped under the stream
  opening.join();
  REQUIRE_FALSE(stream.is_mapped(address));
}

TEST_CASE("a process has the memory of a session that it closed again, as zeroes", "[system][cuda][gpu]") {
  if (skips_without_gpu_kernels()) return;
  const GpuClientMill mill("tensors = \"8 MiB\"\n");  // three sessions of 2 MiB, and a rest for others
  HeldStream stream;
  std::optional<Batch> kept;
  {
    Session other = mill.open("cuda:0");
    kept = mill.made(other, 5);  // outlives its session: that memory is in use
  }
  for (std::size_t i = 0; i < 12; ++i) {
    Session session = mill.open("cuda:0");
    const Batch batch = mill.made(session, i);
    const DeviceBytes bytes = batch.tensor.device_data();
    const LentWords in_both = stream.read({bytes.address, session.slot_bytes() * 2});
    CAPTURE(i);
    REQUIRE(need(batch.tensor.copy()) == mill.expected(i));
    REQUIRE(std::count(in_both.begin() + bytes.size.count, in_both.end(), std::byte{0}) ==
            static_cast<std::ptrdiff_t>(in_both.size() - bytes.size.count));
    // Another batch lies there as well, for the next session not to meet.
    need(session.wait(mill.ask(session, i + 1)));
  }

  REQUIRE(need(kept->tensor.copy()) == mill.expected(5));
  REQUIRE(mill.daemon.run_client("gpu_read", {"cuda:0", mill.paths[0]}).starts_with("1 images"));
}

TEST_CASE("a GPU does not rest while a session has tensors there", "[system][cuda]") {
  if (skips_without_gpu_kernels()) return;
  const GpuClientMill mill("rest_milliseconds = 200\n");
  const auto owners = [&] { return child_processes(mill.daemon.pid(), "millrace-cuda"); };
  REQUIRE(eventually([&] { return owners().empty(); }));

  Session session = mill.open("cuda:0");
  const std::vector<pid_t> first = owners();
  REQUIRE(first.size() == 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(700));  // too short a time shows nothing, and fails nothing

  REQUIRE(need(mill.made(session, 1).tensor.copy()) == mill.expected(1));
  REQUIRE(owners() == first);
}

TEST_CASE("a client's other GPUs use its tensors where they reach them", "[system][cuda]") {
  if (skips_without_gpu_kernels()) return;
  const GpuClientMill mill;
  const auto read_by_two = [&](const std::string& reach) {
    const Process client = Process::spawn(
        {.argv = {mill.daemon.client_program(), "gpu_read", mill.daemon.socket(), "cuda:0", mill.paths[0]},
         .env = {{"SIM_CUDA_DEVICES", "2"}, {"SIM_CUDA_PEERS", reach}, {"SIM_CUDA_STRICT", "0"}}});
    CAPTURE(client.errors());
    REQUIRE(client.wait() == 0);
    return client.output();
  };

  CHECK_THAT(read_by_two("1"), Catch::Contains("other GPUs that read the same: 1"));
  CHECK_THAT(read_by_two("0"), Catch::Contains("other GPUs that read the same: 0"));
}

TEST_CASE("memory that went with its GPU is not lent again", "[system][cuda][gpu]") {
  if (skips_without_gpu_kernels()) return;
  const GpuClientMill mill("tensors = \"8 MiB\"\n");
  const auto open_half = [&] {  // not twice at once
    return mill.daemon.connect().open_session(
        {.slots = 2, .batch = 8, .recipe = {.resize = ExactSize{{40, 24}}}, .slot_bytes = 2_MiB, .memory = "cuda:0"});
  };
  need(open_half());
  const std::vector<pid_t> workers = child_processes(mill.daemon.pid(), "millrace-cuda");
  REQUIRE(workers.size() == 1);
  ::kill(workers[0], SIGKILL);
  REQUIRE(eventually([&] { return is_replaced(mill.daemon.pid(), "millrace-cuda", workers[0]); }));

  std::optional<Session> session;
  REQUIRE(eventually([&] {
    Result<Session> opened = open_half();
    if (opened) session.emplace(*std::move(opened));
    return session.has_value();
  }));

  REQUIRE(need(mill.made(*session, 1).tensor.copy()) == mill.expected(1));
}

TEST_CASE("a session of which nobody can say whether its slots are in use ends", "[system][cuda]") {
  if (skips_without_gpu_kernels()) return;
  const GpuClientMill mill;
  HeldStream stream;
  std::optional<Session> session(mill.open("cuda:0", 1));
  Batch batch = mill.made(*session, 1);
  const std::uint64_t address = batch.tensor.device_data().address;
  batch.tensor.used_by(stream.handle());
  stream.destroy();
  // NVIDIA's driver may do anything with such a stream: the simulated one is to refuse it, and not to end the test.
  ::setenv("SIM_CUDA_STRICT_HANDLES", "0", 1);

  batch.tensor.release();

  ::unsetenv("SIM_CUDA_STRICT_HANDLES");

  const Result<Ticket> after = session->submit({.samples = {{.source = Path{mill.paths[0]}}}});
  REQUIRE_FALSE(after);
  REQUIRE(after.error().code == Code::kPrecondition);
  REQUIRE_THAT(after.error().message, Catch::Contains("CUDA: cuEventRecord: CUDA_ERROR_INVALID_HANDLE"));
  session.reset();
  REQUIRE(stream.is_mapped(address));  // the stream may use it still
  REQUIRE(eventually([&] { return mill.daemon.metric("millrace_sessions") == 0; }));
}

TEST_CASE("when a GPU's owner goes, what has come stays readable and the session says what to do",
          "[system][cuda][gpu]") {
  if (skips_without_gpu_kernels()) return;
  const GpuClientMill mill;
  Session session = mill.open("cuda:0");
  const Batch kept = mill.made(session, 1);
  const std::vector<pid_t> workers = child_processes(mill.daemon.pid(), "millrace-cuda");
  REQUIRE(workers.size() == 1);
  ::kill(workers[0], SIGKILL);

  std::optional<Error> lost;
  REQUIRE(eventually([&] {
    const Batch batch = need(session.wait(mill.ask(session, 2)));
    lost = batch.failure;
    return lost.has_value();
  }));

  REQUIRE(lost->code == Code::kUnavailable);
  REQUIRE_THAT(lost->message, Catch::Contains("open another session"));
  REQUIRE(need(kept.tensor.copy()) == mill.expected(1));
}

}  // namespace millrace
