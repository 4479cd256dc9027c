#include "tests/bench/service/transports.h"

#include <fcntl.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>

namespace millrace::bench {
namespace {

constexpr std::uint32_t kWarmUp = 3;

std::int64_t now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}
double since_us(std::int64_t begin_ns) {
  return static_cast<double>(now_ns() - begin_ns) / 1000;
}

[[noreturn]] void broken(const char* what) {
  std::perror(what);
  std::exit(1);
}

void write_all(int fd, const void* data, std::size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = ::write(fd, at, size);
    if (written <= 0) ::_exit(0);
    at += written;
    size -= static_cast<std::size_t>(written);
  }
}

void read_all(int fd, void* data, std::size_t size) {
  char* at = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t got = ::read(fd, at, size);
    if (got <= 0) broken("reading from the pipe");
    at += got;
    size -= static_cast<std::size_t>(got);
  }
}

// On every byte from `asked`, the time and then the payload into `pipe`.
[[noreturn]] void pipe_sender(int asked, int pipe, std::size_t bytes) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const std::vector<char> payload(bytes, 7);
  char request = 0;
  while (::read(asked, &request, 1) == 1) {
    const std::int64_t begin = now_ns();
    write_all(pipe, &begin, sizeof begin);
    write_all(pipe, payload.data(), payload.size());
  }
  ::_exit(0);
}

class BytesService : public grpc::CallbackGenericService {
 public:
  explicit BytesService(std::size_t bytes) : payload_(bytes, 7) {}

 private:
  struct Reply : grpc::ServerGenericBidiReactor {
    explicit Reply(const std::string& payload) : slice(payload.data(), payload.size(), grpc::Slice::STATIC_SLICE) {
      StartRead(&request);
    }
    void OnReadDone(bool) override {
      begin = now_ns();
      const grpc::Slice slices[] = {grpc::Slice(&begin, sizeof begin), slice};
      reply = grpc::ByteBuffer(slices, 2);
      StartWriteAndFinish(&reply, grpc::WriteOptions(), grpc::Status::OK);
    }
    void OnDone() override { delete this; }
    grpc::Slice slice;
    grpc::ByteBuffer request;
    grpc::ByteBuffer reply;
    std::int64_t begin = 0;
  };
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
    return new Reply(payload_);
  }

  std::string payload_;
};

// Runs in a child made before this process has touched gRPC.
[[noreturn]] void grpc_sender(const std::string& address, int ready, std::size_t bytes) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  BytesService service(bytes);
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials());
  builder.RegisterCallbackGenericService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (!server) ::_exit(1);
  write_all(ready, "r", 1);
  for (;;) ::pause();
}

double grpc_round(grpc::GenericStub& stub, std::vector<char>& buffer) {
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  grpc::ByteBuffer request(nullptr, 0);
  grpc::ByteBuffer reply;
  grpc::Status status;
  const auto call = stub.PrepareUnaryCall(&context, "/bench/Get", request, &queue);
  call->StartCall();
  call->Finish(&reply, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  if (!status.ok()) broken(status.error_message().c_str());
  std::vector<grpc::Slice> slices;
  if (!reply.Dump(&slices).ok()) broken("reply");
  std::size_t at = 0;
  for (const grpc::Slice& slice : slices) {
    std::memcpy(buffer.data() + at, slice.begin(), slice.size());
    at += slice.size();
  }
  std::int64_t begin = 0;
  std::memcpy(&begin, buffer.data(), sizeof begin);
  return since_us(begin);
}

}  // namespace

std::vector<double> through_pipe(std::size_t bytes, std::uint32_t rounds) {
  int asked[2], pipe[2];
  if (::pipe2(asked, O_CLOEXEC) != 0 || ::pipe2(pipe, O_CLOEXEC) != 0) broken("pipe");
  ::fcntl(pipe[0], F_SETPIPE_SZ, 1 << 20);  // the largest that an ordinary user may have
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(asked[1]);
    pipe_sender(asked[0], pipe[1], bytes);
  }
  ::close(asked[0]);
  ::close(pipe[1]);
  std::vector<char> buffer(bytes);
  std::vector<double> times;
  for (std::uint32_t i = 0; i < rounds + kWarmUp; ++i) {
    std::int64_t begin = 0;
    write_all(asked[1], "?", 1);
    read_all(pipe[0], &begin, sizeof begin);
    read_all(pipe[0], buffer.data(), buffer.size());
    if (i >= kWarmUp) times.push_back(since_us(begin));
  }
  ::close(asked[1]);
  ::close(pipe[0]);
  ::waitpid(child, nullptr, 0);
  return times;
}

std::vector<double> through_grpc(std::size_t bytes, std::uint32_t rounds) {
  char folder[] = "/tmp/millrace-bench-XXXXXX";
  if (::mkdtemp(folder) == nullptr) broken("mkdtemp");
  const std::string address = std::string("unix:") + folder + "/socket";
  int ready[2];
  if (::pipe2(ready, O_CLOEXEC) != 0) broken("pipe");
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string fd = std::to_string(ready[1]);
  const std::string size = std::to_string(bytes);
  ::fcntl(ready[1], F_SETFD, 0);
  const pid_t child = ::fork();
  if (child == 0) {
    // A fresh image of this program: gRPC does not survive a fork.
    ::execl(program.c_str(), program.c_str(), "--grpc-sender", address.c_str(), fd.c_str(), size.c_str(), nullptr);
    ::_exit(127);
  }
  ::close(ready[1]);
  char byte = 0;
  read_all(ready[0], &byte, 1);
  ::close(ready[0]);
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  grpc::GenericStub stub(grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
  std::vector<char> buffer(bytes + sizeof(std::int64_t));
  std::vector<double> times;
  for (std::uint32_t i = 0; i < rounds + kWarmUp; ++i) {
    const double time = grpc_round(stub, buffer);
    if (i >= kWarmUp) times.push_back(time);
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  std::filesystem::remove_all(folder);
  return times;
}

void serve_bytes_if_asked(int argc, char** argv) {
  if (argc == 5 && std::string(argv[1]) == "--grpc-sender")
    grpc_sender(argv[2], std::atoi(argv[3]), std::stoull(argv[4]));
}

}  // namespace millrace::bench
