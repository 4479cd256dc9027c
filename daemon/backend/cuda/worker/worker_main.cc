// millrace-cuda: owns a GPU for the daemon, which starts it (cuda_worker.h). By hand it says which GPUs there are.
//
// A thread watches the daemon, the memory that sessions map has one, and each half of a lane. Whatever breaks the CUDA
// context ends the process: the daemon starts another one.
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <latch>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "daemon/backend/cuda/cuda_wire.h"
#include "daemon/backend/cuda/worker/exported_memory.h"
#include "daemon/backend/cuda/worker/gpu.h"
#include "daemon/backend/cuda/worker/gpu_lane.h"
#include "daemon/backend/cuda/worker/kernel_image.h"
#include "daemon/backend/cuda/worker/lane_room.h"
#include "proto/base/mutex.h"
#include "proto/base/sockets/socket_message.h"

namespace millrace::cuda {
namespace {

constexpr int kIdleMilliseconds = 10'000;  // without a batch, after which the GPU's memory goes back

template <class Message>
bool receive(int socket, Message& message) {
  ssize_t bytes = 0;
  do {
    bytes = recv(socket, &message, sizeof message, 0);
  } while (bytes < 0 && errno == EINTR);
  return bytes == static_cast<ssize_t>(sizeof message);
}

template <class Message>
void answer(int socket, const Message& message) {
  ssize_t sent = 0;
  do {
    sent = send(socket, &message, sizeof message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
}

template <class Message>
Message with_error(const Error& error) {
  Message message;
  message.code = static_cast<std::uint32_t>(error.code);
  std::memcpy(message.text, error.message.data(), std::min(error.message.size(), sizeof message.text - 1));
  return message;
}

// What the threads begin with, and whether all have begun.
class Start {
 public:
  explicit Start(std::uint32_t threads) : left_(threads) {}

  void began(const Result<void>& how) {
    {
      MutexLock lock(mutex_);
      if (!how && how_) how_ = how.error();
    }
    left_.count_down();
  }
  Result<void> wait() {
    left_.wait();
    MutexLock lock(mutex_);
    return how_;
  }

 private:
  std::latch left_;
  Mutex mutex_;
  Result<void> how_ MILLRACE_GUARDED_BY(mutex_);
};

bool is_quiet(int socket) {
  pollfd ready{.fd = socket, .events = POLLIN};
  return poll(&ready, 1, kIdleMilliseconds) == 0;
}

// Of a context that is broken, which is nobody's any more: the daemon, which has been told why, ends the process. Were the
// end first, others would hear of it before the daemon knows why.
[[noreturn]] void wait_for_the_end(int socket) {
  std::byte more;
  while (receive(socket, more)) {
  }
  _exit(EXIT_FAILURE);
}

// Until the daemon closes its end.
void serve(GpuLane& lane, int socket) {
  for (;;) {
    if (is_quiet(socket)) lane.rest();
    CudaBatch batch;
    if (!receive(socket, batch)) return;
    const Result<void> made = lane.make(batch);
    CudaDone done = made ? CudaDone{} : with_error<CudaDone>(made.error());
    done.number = batch.number;
    answer(socket, done);
    if (!made && made.error().code == Code::kUnavailable) wait_for_the_end(socket);
  }
}

// Until the daemon closes its end.
void serve(MemoryMover& mover) {
  CudaMemoryOrder order;
  while (receive(kCudaMemorySocket, order)) {
    const Result<UniqueFd> carried_out = mover.carry_out(order);
    CudaDone done = carried_out ? CudaDone{} : with_error<CudaDone>(carried_out.error());
    done.number = order.number;
    const int descriptor = carried_out ? carried_out->get() : -1;
    const auto message = std::as_bytes(std::span(&done, 1));
    while (send_message(kCudaMemorySocket, message, {&descriptor, descriptor < 0 ? 0U : 1U}) < 0 && errno == EINTR) {
    }
    if (!carried_out && carried_out.error().code == Code::kUnavailable) wait_for_the_end(kCudaMemorySocket);
  }
}

Result<std::byte*> map_staging(int descriptor, std::uint64_t bytes) {
  void* const staging = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (staging == MAP_FAILED) return Error{Code::kExhausted, errno_error("mapping the staging memory", errno).message};
  return static_cast<std::byte*>(staging);
}

void run_memory(const GpuContext& context, ExportedMemories& memories, Start& start) {
  const Result<std::byte*> staging = map_staging(kCudaMemoryStaging, kCudaMemoryStagingBytes.count);
  if (!staging) return start.began(staging.error());
  const Result<std::unique_ptr<MemoryMover>> mover = MemoryMover::create(context, memories, *staging);
  start.began(mover ? Result<void>() : Result<void>(mover.error()));
  if (mover) serve(**mover);
}

void run_half(std::uint32_t number, std::uint32_t half, LaneRoom& room, const GpuContext& context,
              const Kernels& kernels, const ExportedMemories& memories, Start& start) {
  const Result<std::unique_ptr<GpuLane>> lane = GpuLane::create(context, kernels, memories, room, half);
  start.began(lane ? Result<void>() : Result<void>(lane.error()));
  if (lane) serve(**lane, cuda_lane_socket(number, half));
}

// On a thread whose context is current.
Result<std::unique_ptr<LaneRoom>> make_room(std::uint32_t lane, const CudaHello& hello, const GpuContext& context) {
  const CudaStaging layout{hello.encoded_bytes, hello.tensor_bytes};
  MILLRACE_TRY(std::byte* const staging, map_staging(cuda_lane_staging(lane), layout.size()));
  return LaneRoom::create(context, staging, layout, hello.device_bytes, GpuLane::tables_bytes());
}

// From the beginning on: whatever hangs in the driver, this process ends with the daemon.
void end_with_the_daemon() {
  std::thread([] {
    pollfd end{.fd = kCudaControl, .events = 0};
    while (poll(&end, 1, -1) != 1) {
    }
    _exit(EXIT_SUCCESS);
  }).detach();
}

// Ends with the process: threads may be in calls of a driver that hangs.
Result<void> serve_all(const Driver& driver, const CudaHello& hello) {
  if (hello.lanes < 1 || hello.lanes > kMostCudaLanes) return Error{Code::kUnsupported, "1 to 4 lanes are possible"};
  MILLRACE_TRY(const CudaReady ready, describe_gpu(driver, hello.uuid));
  MILLRACE_TRY(const GpuContext context, GpuContext::open(driver, hello.uuid));
  MILLRACE_TRY(const Kernels kernels, Kernels::load(driver, context.device(), kernel_image()));
  std::vector<std::unique_ptr<LaneRoom>> rooms;
  for (std::uint32_t lane = 0; lane < hello.lanes; ++lane) {
    MILLRACE_TRY(std::unique_ptr<LaneRoom> room, make_room(lane, hello, context));
    rooms.push_back(std::move(room));
  }
  Start start(kCudaHalves * hello.lanes + 1);
  ExportedMemories memories;
  std::vector<std::thread> threads;
  pthread_setname_np(threads.emplace_back([&] { run_memory(context, memories, start); }).native_handle(), "mr-memory");
  for (std::uint32_t i = 0; i < kCudaHalves * hello.lanes; ++i) {
    const std::uint32_t lane = i / kCudaHalves, half = i % kCudaHalves;
    std::thread& thread = threads.emplace_back(
        [&, lane, half] { run_half(lane, half, *rooms[lane], context, kernels, memories, start); });
    pthread_setname_np(thread.native_handle(), ("mr-lane-" + std::to_string(i)).c_str());
  }
  const Result<void> begun = start.wait();
  answer(kCudaControl, begun ? ready : with_error<CudaReady>(begun.error()));
  if (!begun) _exit(EXIT_FAILURE);
  for (std::thread& thread : threads) thread.join();
  _exit(EXIT_SUCCESS);
}

Result<void> answer_list(const Driver& driver) {
  MILLRACE_TRY(const std::vector<CudaReady> gpus, list_gpus(driver));
  for (const CudaReady& gpu : gpus) answer(kCudaControl, gpu);
  answer(kCudaControl, CudaReady{.code = kCudaListEnds});
  return {};
}

int run(const CudaHello& hello) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // of the thread that starts such processes, which lives as long as they may
  end_with_the_daemon();
  // Kernels are loaded at the start, not at their first launch, which would hold up a batch.
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  const Result<const Driver*> driver = Driver::load();
  Result<void> served = driver ? Result<void>() : Result<void>(driver.error());
  if (served) served = hello.work == CudaWork::kList ? answer_list(**driver) : serve_all(**driver, hello);
  if (!served) answer(kCudaControl, with_error<CudaReady>(served.error()));
  return served ? EXIT_SUCCESS : EXIT_FAILURE;
}

int say_gpus() {
  const Result<const Driver*> driver = Driver::load();
  const Result<std::vector<CudaReady>> gpus =
      driver ? list_gpus(**driver) : Result<std::vector<CudaReady>>(driver.error());
  if (!gpus) {
    std::fprintf(stderr, "millrace-cuda: %s\n", gpus.error().message.c_str());
    return EXIT_FAILURE;
  }
  for (const CudaReady& gpu : *gpus)
    std::printf("%d: %s, %llu MiB, compute capability %d.%d\n", gpu.ordinal, gpu.name,
                static_cast<unsigned long long>(gpu.memory_bytes >> 20), gpu.major, gpu.minor);
  std::printf("GPU kernels: %s\n", kernel_image().empty() ? "none, this build had no CUDA compiler" : "there");
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace millrace::cuda

int main() {
  using namespace millrace;
  signal(SIGPIPE, SIG_IGN);
  CudaHello hello;
  if (!cuda::receive(kCudaControl, hello)) return cuda::say_gpus();
  if (hello.version == kCudaWireVersion) return cuda::run(hello);
  cuda::answer(kCudaControl, CudaReady{});  // whose version says it
  return EXIT_FAILURE;
}
