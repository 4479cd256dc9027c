// Tensors in a GPU's memory: the descriptor that a client gets, what lies in it, whose it stays, and what becomes of it when
// the process that owns the GPU goes. On the simulated driver, whose descriptors are files.
#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <iterator>

#include "proto/shm/segment_layout.h"
#include "tests/support/host/decoder_processes.h"
#include "tests/support/host/eventually.h"
#include "tests/support/host/temp_folder.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/support/pictures/test_images.h"
#include "tests/support/skip.h"
#include "tests/system/support/daemon.h"
#include "tests/system/support/need.h"
#include "tests/system/support/raw_mill.h"
#include "tests/system/support/raw_session.h"

namespace millrace {
namespace {

constexpr std::uint32_t kSide = 40;
constexpr std::uint64_t kImage = 3 * kSide * kSide;
const std::string kSettings = "staging = \"32 MiB\"\nmemory = \"256 MiB\"\n";

// Files for the GPU, files for the processor, and one that nobody can decode.
std::vector<std::string> write_files(const TempFolder& folder) {
  std::vector<std::string> paths;
  for (std::uint32_t i = 0; i < 9; ++i) {
    const bool is_png = i % 3 == 1;
    paths.push_back(folder / ("image_" + std::to_string(i) + (is_png ? ".png" : ".jpg")));
    const Pixels pixels = make_pixels(60 + 7 * i, 50 + 11 * i, 3, i);
    write_file(paths.back(), is_png ? make_png({.pixels = pixels}) : make_jpeg({.pixels = pixels}));
  }
  paths.push_back(folder / "broken.jpg");
  write_file(paths.back(), std::string("\xff\xd8\xff\xe0 no picture"));
  return paths;
}

struct GpuMemoryMill {
  explicit GpuMemoryMill(const std::string& settings = kSettings)
      : paths(write_files(folder)),
        daemon({.roots = {folder.path()},
                .cache = "memory = 0\n",
                .cuda = "yes",
                .cuda_settings = settings,
                .for_all_users = true}) {}

  v1::ClientMessage submit(v1::OnError on_error) const {
    v1::ClientMessage message;
    v1::Submit& request = *message.mutable_submit();
    request.set_batch_id(1);
    for (const std::string& path : paths) request.add_samples()->set_path(path);
    v1::Size& size = *request.mutable_recipe()->mutable_resize()->mutable_exact();
    size.set_width(kSide);
    size.set_height(kSide);
    request.set_on_error(on_error);
    return message;
  }

  TempFolder folder;
  std::vector<std::string> paths;
  Daemon daemon;
};

v1::ServerMessage ask(RawSession& session, const v1::ClientMessage& message) {
  session.send(message);
  return session.receive();
}

struct GpuMade {
  std::vector<std::byte> bytes;
  std::vector<std::string> backends;
  std::vector<std::uint64_t> places;  // of each image, from the tensor's start
};

GpuMade made(const RawSession& session, const v1::TensorHandle& handle) {
  GpuMade made;
  if (handle.segment() == 1) made.bytes = session.read_tensors(handle.offset(), handle.bytes());
  if (handle.segment() == 0) {
    made.bytes.resize(handle.bytes());
    REQUIRE(::pread(session.segment.get(), made.bytes.data(), handle.bytes(), static_cast<off_t>(handle.offset())) > 0);
  }
  for (std::uint32_t i = 0; i < handle.samples(); ++i) {
    shm::SampleRecord record{};
    REQUIRE(::pread(session.segment.get(), &record, sizeof record,
                    static_cast<off_t>(handle.records_offset() + i * sizeof record)) == sizeof record);
    made.backends.emplace_back(record.backend, ::strnlen(record.backend, sizeof record.backend));
    made.places.push_back(record.pixels_offset - handle.offset());
  }
  return made;
}

// What a client hears that opens a session there.
std::string refusal(const Daemon& daemon, const RawSessionSpec& spec) {
  try {
    const RawSession session(daemon.socket(), spec);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "it opened";
}

const RawSessionSpec kOnGpu{.slots = 2, .slot_bytes = 4 << 20, .memory = "cuda:0"};

}  // namespace

TEST_CASE("tensors in a GPU's memory are those of the host's, whichever backend makes them", "[system][cuda]") {
  if (skips_without_gpu_kernels()) return;
  const v1::OnError on_error = GENERATE(v1::ON_ERROR_ZERO, v1::ON_ERROR_SKIP, v1::ON_ERROR_SUBSTITUTE);
  const GpuMemoryMill mill;
  RawSession host(mill.daemon.socket(), {.slot_bytes = 4 << 20}), gpu(mill.daemon.socket(), kOnGpu);
  REQUIRE(host.opened.memories_size() == 1);
  REQUIRE(gpu.opened.memories_size() == 2);
  REQUIRE(gpu.opened.memories(1).name() == "cuda:0");
  REQUIRE(gpu.opened.memories(1).bytes() == 2 * (4 << 20));
  REQUIRE(gpu.opened.memories(1).device() ==
          std::string(reinterpret_cast<const char*>(gpu.tensors.reply.ticket), shm::kTicketBytes));
  REQUIRE(gpu.segment_bytes < 2 << 20);  // records

  for (int batch = 0; batch < 4; ++batch) {  // in both slots, and again
    const v1::ServerMessage in_host = ask(host, mill.submit(on_error)), on_gpu = ask(gpu, mill.submit(on_error));
    CAPTURE(in_host.ShortDebugString(), on_gpu.ShortDebugString());
    REQUIRE(in_host.has_completed());
    REQUIRE(on_gpu.has_completed());
    REQUIRE(on_gpu.completed().handle().segment() == 1);

    const GpuMade expected = made(host, in_host.completed().handle()), found = made(gpu, on_gpu.completed().handle());

    REQUIRE(expected.bytes.size() == (on_error == v1::ON_ERROR_SKIP ? 9 : 10) * kImage);
    REQUIRE(found.bytes == expected.bytes);
    REQUIRE(found.places == expected.places);
    REQUIRE(std::count(found.backends.begin(), found.backends.end(), "cuda:0") >= 6);
    REQUIRE(std::count(found.backends.begin(), found.backends.end(), "cpu") >= 3);
    host.send(release_of(in_host.completed().handle()));
    gpu.send(release_of(on_gpu.completed().handle()));
  }
}

TEST_CASE("a session's memory on a GPU is zeroes before its first batch, whichever session had it", "[system][cuda]") {
  if (skips_without_gpu_kernels()) return;
  const GpuMemoryMill mill;
  {
    RawSession before(mill.daemon.socket(), kOnGpu);
    REQUIRE(ask(before, mill.submit(v1::ON_ERROR_ZERO)).has_completed());
  }

  const RawSession session(mill.daemon.socket(), kOnGpu);

  const auto bytes = session.read_tensors(0, 2 * (4 << 20));
  REQUIRE(std::count(bytes.begin(), bytes.end(), std::byte{0}) == static_cast<std::ptrdiff_t>(bytes.size()));
}

TEST_CASE("when a GPU's owner goes, sessions in its memory are told, and others notice nothing", "[system][cuda]") {
  if (skips_without_gpu_kernels()) return;
  const GpuMemoryMill mill;
  RawSession host(mill.daemon.socket(), {.slot_bytes = 4 << 20}), gpu(mill.daemon.socket(), kOnGpu);
  const v1::ServerMessage before = ask(gpu, mill.submit(v1::ON_ERROR_ZERO));
  REQUIRE(before.has_completed());
  const GpuMade held = made(gpu, before.completed().handle());
  const std::vector<pid_t> workers = child_processes(mill.daemon.pid(), "millrace-cuda");
  REQUIRE(workers.size() == 1);

  ::kill(workers[0], SIGKILL);

  REQUIRE(eventually([&] { return is_replaced(mill.daemon.pid(), "millrace-cuda", workers[0]); }));
  const v1::ServerMessage lost = ask(gpu, mill.submit(v1::ON_ERROR_ZERO));
  CAPTURE(lost.ShortDebugString());
  REQUIRE(lost.has_failed());
  REQUIRE(lost.failed().code() == "UNAVAILABLE");
  REQUIRE_THAT(lost.failed().message(), Catch::Contains("open another session"));
  REQUIRE(made(gpu, before.completed().handle()).bytes == held.bytes);  // what is mapped stays
  REQUIRE(ask(host, mill.submit(v1::ON_ERROR_ZERO)).has_completed());
  REQUIRE(eventually([&] { return refusal(mill.daemon, kOnGpu) == "it opened"; }));
  RawSession again(mill.daemon.socket(), kOnGpu);
  REQUIRE(ask(again, mill.submit(v1::ON_ERROR_ZERO)).has_completed());
}

TEST_CASE("memory of a GPU is charged until the process that had it ends", "[system][cuda]") {
  if (skips_without_gpu_kernels()) return;
  const GpuMemoryMill mill(kSettings + "tensors = \"12 MiB\"\n");
  const Process client = mill.daemon.client("gpu_memory", {"cuda:0", "2", "3"});
  REQUIRE(client.wait_for("open"));

  const std::string while_open = refusal(mill.daemon, kOnGpu);
  REQUIRE(client.say(""));
  REQUIRE(client.wait_for("closed"));
  REQUIRE(eventually([&] { return mill.daemon.metric("millrace_sessions") == 0; }));
  const std::string while_alive = refusal(mill.daemon, kOnGpu);
  client.kill(SIGKILL);

  REQUIRE_THAT(while_open, Catch::Contains("cuda.tensors"));
  REQUIRE_THAT(while_alive, Catch::Contains("cuda.tensors"));
  REQUIRE(eventually([&] { return refusal(mill.daemon, kOnGpu) == "it opened"; }));
}

TEST_CASE("sessions that come and go are charged what they took of the GPU, and no descriptor each", "[system][cuda]") {
  if (skips_without_gpu_kernels()) return;
  const GpuMemoryMill mill(kSettings + "tensors = \"64 MiB\"\n");
  const RawSessionSpec small{.slots = 1, .slot_bytes = 4096, .memory = "cuda:0"};  // of which each takes 2 MiB
  const auto descriptors = [&] {
    const std::filesystem::directory_iterator all("/proc/" + std::to_string(mill.daemon.pid()) + "/fd");
    return std::distance(begin(all), end(all));
  };
  std::string answer = refusal(mill.daemon, small);
  const auto first = descriptors();

  int opened = 0;
  for (; answer == "it opened" && opened < 100; ++opened) answer = refusal(mill.daemon, small);

  CAPTURE(opened, answer);
  REQUIRE_THAT(answer, Catch::Contains("cuda.tensors"));
  REQUIRE(opened >= 24);  // seven eighths of 32
  REQUIRE(opened <= 32);
  REQUIRE(eventually([&] { return descriptors() < first + opened / 2; }));
}

TEST_CASE("a memory that is not there is refused with those that are", "[system][cuda]") {
  if (skips_without_gpu_kernels()) return;
  {
    const GpuMemoryMill mill;
    REQUIRE_THAT(refusal(mill.daemon, {.memory = "cuda:7"}),
                 Catch::Contains("\"cuda:7\"") && Catch::Contains("host, cuda:0"));
    // More than the GPU has left, or than there may be.
    REQUIRE_THAT(refusal(mill.daemon, {.slots = 8, .slot_bytes = 512 << 20, .memory = "cuda:0"}),
                 Catch::Contains("cuda.tensors") || Catch::Contains("memory.segments"));
  }
  const GpuMemoryMill without(kSettings + "tensors = 0\n");
  REQUIRE_THAT(refusal(without.daemon, kOnGpu),
               Catch::Contains("this daemon has host; that of GPUs takes backends.cuda"));
}

}  // namespace millrace
