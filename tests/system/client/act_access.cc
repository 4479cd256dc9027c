// Clients that try what their user may not do.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string_view>

#include "millrace/client.h"
#include "proto/cuda/driver.h"
#include "tests/system/client/acts.h"
#include "tests/system/support/need.h"
#include "tests/system/support/raw_session.h"

namespace millrace {
namespace {

// "PATH", or "PATH[OFFSET+LENGTH]".
Source source_of(const std::string& argument) {
  const std::size_t bracket = argument.rfind('['), plus = argument.rfind('+');
  if (!argument.ends_with(']') || bracket == argument.npos || plus == argument.npos) return Path{argument};
  return FilePart{argument.substr(0, bracket), std::stoull(argument.substr(bracket + 1)),
                  std::stoull(argument.substr(plus + 1))};
}

std::string outcome(bool succeeded) {
  return succeeded ? "succeeded" : std::strerror(errno);
}

}  // namespace

int act_read(const std::string& socket, Arguments arguments) {
  Client client = need(Client::connect(socket));
  const auto count = static_cast<std::uint32_t>(arguments.size());
  Session session =
      need(client.open_session({.name = "read", .slots = 1, .batch = count, .recipe = Recipe::evaluate(32, 32)}));
  BatchRequest request{.on_error = OnError::kZero};
  for (const std::string& argument : arguments) request.samples.push_back({.source = source_of(argument)});
  need(session.submit(request));
  const Batch batch = need(session.next());
  if (batch.failure) throw unexpected(*batch.failure);
  std::vector<std::string> lines(arguments.size(), "ok");
  for (const SampleError& error : batch.errors) {
    lines[error.index] = code_name(error.error.code);
    lines[error.index] += " " + error.error.message;
  }
  for (std::size_t i = 0; i < lines.size(); ++i) say(std::to_string(i) + " " + lines[i]);
  return 0;
}

int act_list(const std::string& socket, Arguments arguments) {
  Client client = need(Client::connect(socket));
  Session session = need(client.open_session({.slots = 1, .batch = 1, .recipe = Recipe::evaluate(32, 32)}));
  const Result<Dataset> dataset = session.open_dataset(arguments[0]);
  if (dataset) say("samples " + std::to_string(dataset->samples()));
  if (!dataset) say(std::string(code_name(dataset.error().code)) + " " + dataset.error().message);
  return 0;
}

// How many of this process's other GPUs read those bytes there as well; nothing where it has one.
void say_peers(const TensorView& tensor, const std::vector<std::byte>& bytes) {
  const cuda::Driver& driver = *need(cuda::Driver::load());
  const auto check = [&](cuda::CUresult result) { need(driver.checked(result, "a consumer's call")); };
  int count = 0, equal = 0;
  check(driver.cuDeviceGetCount(&count));
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    if (ordinal == tensor.device()) continue;
    cuda::CUdevice device = 0;
    cuda::CUcontext context = nullptr;
    cuda::CUstream stream = nullptr;
    check(driver.cuDeviceGet(&device, ordinal));
    check(driver.cuDevicePrimaryCtxRetain(&context, device));
    check(driver.cuCtxSetCurrent(context));
    check(driver.cuStreamCreateWithPriority(&stream, cuda::CU_STREAM_NON_BLOCKING, 0));
    std::vector<std::byte> read(bytes.size());
    const cuda::CUresult copied =
        driver.cuMemcpyDtoHAsync_v2(read.data(), tensor.device_data().address, read.size(), stream);
    if (copied == cuda::CUDA_SUCCESS) check(driver.cuStreamSynchronize(stream));
    equal += read == bytes ? 1 : 0;
  }
  if (count > 1) say("other GPUs that read the same: " + std::to_string(equal));
}

int act_gpu_read(const std::string& socket, Arguments arguments) {
  const std::span<const std::string> paths = arguments.subspan(1);
  const auto count = static_cast<std::uint32_t>(paths.size());
  Session session =
      need(need(Client::connect(socket))
               .open_session({.slots = 1, .batch = count, .recipe = Recipe::evaluate(40, 32), .memory = arguments[0]}));
  BatchRequest request;
  for (const std::string& path : paths) request.samples.push_back({.source = Path{path}});
  need(session.submit(request));
  const Batch batch = need(session.next());
  if (batch.failure) throw unexpected(*batch.failure);
  const std::vector<std::byte> bytes = need(batch.tensor.copy());
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  say(std::to_string(batch.tensor.samples()) + " images: " + std::to_string(std::hash<std::string_view>()(text)));
  if (batch.tensor.device()) say_peers(batch.tensor, bytes);
  return 0;
}

int act_gpu_memory(const std::string& socket, Arguments arguments) {
  std::optional<RawSession> session;
  try {
    session.emplace(socket, RawSessionSpec{.slots = static_cast<std::uint32_t>(std::stoul(arguments[1])),
                                           .slot_bytes = std::stoull(arguments[2]) << 20,
                                           .memory = arguments[0]});
  } catch (const std::runtime_error& error) {
    say(error.what());
    return 0;
  }
  say("open");
  std::string line;
  std::getline(std::cin, line);
  session.reset();
  say("closed");
  std::getline(std::cin, line);
  return 0;
}

int act_reopen(const std::string& socket, Arguments) {
  const RawSession session(socket, {});
  const int fd = session.segment.get();
  void* const mapped = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  say("map for writing: " + outcome(mapped != MAP_FAILED));
  void* const readable = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0);
  say("map for reading: " + outcome(readable != MAP_FAILED));
  say("allow writing later: " + outcome(mprotect(readable, 4096, PROT_READ | PROT_WRITE) == 0));
  const char byte = 1;
  say("write: " + outcome(pwrite(fd, &byte, 1, 0) == 1));
  say("truncate: " + outcome(ftruncate(fd, 0) == 0));
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  const int again = open(path.c_str(), O_RDWR | O_CLOEXEC);
  say("open for writing: " + outcome(again >= 0));
  return 0;
}

}  // namespace millrace
