// millrace-fpga: owns an FPGA card for the daemon, which starts it (fpga_worker.h). By hand it says which cards there are.
//
// One thread has the card (fpga_reader.h), another one watches the daemon. Whatever breaks the card's context ends the
// process: the daemon starts another one.
#include <poll.h>
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
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "daemon/backend/fpga/fpga_wire.h"
#include "daemon/backend/fpga/worker/fpga_reader.h"
#include "daemon/backend/fpga/worker/xrt_card.h"

namespace millrace::fpga {
namespace {

// XRT takes its driver library from a folder that XILINX_XRT names. Where the environment says nothing, this project's
// package has one, which names those of the system.
void find_xrt() {
  std::error_code none;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", none).parent_path();
  const std::filesystem::path folder = self / "xrt";
  if (std::filesystem::exists(folder, none)) setenv("XILINX_XRT", folder.c_str(), 0);
}

void answer(const FpgaReady& ready) {
  ssize_t sent = 0;
  do {
    sent = send(kFpgaControl, &ready, sizeof ready, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
}

FpgaReady with_error(const Error& error) {
  FpgaReady ready;
  ready.code = static_cast<std::uint32_t>(error.code);
  std::memcpy(ready.text, error.message.data(), std::min(error.message.size(), sizeof ready.text - 1));
  return ready;
}

template <std::size_t kSize>
std::string text_of(const char (&text)[kSize]) {
  return std::string(text, strnlen(text, kSize));
}

// From the beginning on: whatever hangs in the library, this process ends with the daemon.
void end_with_the_daemon() {
  std::thread([] {
    pollfd end{.fd = kFpgaControl, .events = 0};
    while (poll(&end, 1, -1) != 1) {
    }
    _exit(EXIT_SUCCESS);
  }).detach();
}

Result<void> answer_list(const FpgaHello& hello) {
  MILLRACE_TRY(const std::vector<FpgaReady> cards, list_cards(text_of(hello.images)));
  for (const FpgaReady& card : cards) answer(card);
  answer(FpgaReady{.code = kFpgaListEnds});
  return {};
}

// Does not come back: the library's threads may be in calls that hang.
Result<void> serve(const FpgaHello& hello) {
  if (hello.lanes < 1 || hello.lanes > kMostFpgaLanes) return Error{Code::kUnsupported, "1 to 8 lanes are possible"};
  const FpgaStaging layout{hello.encoded_bytes, hello.tensor_bytes};
  std::vector<std::byte*> staging;
  for (std::uint32_t i = 0; i < hello.lanes; ++i) {
    void* const at = mmap(nullptr, layout.size(), PROT_READ | PROT_WRITE, MAP_SHARED, fpga_lane_staging(i), 0);
    if (at == MAP_FAILED) return Error{Code::kExhausted, errno_error("mapping the staging memory", errno).message};
    staging.push_back(static_cast<std::byte*>(at));
  }
  MILLRACE_TRY(const std::unique_ptr<FpgaReader> reader, FpgaReader::create(hello, staging));
  answer(FpgaReady{});
  _exit(reader->run() ? EXIT_SUCCESS : EXIT_FAILURE);
}

int run(const FpgaHello& hello) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // of the thread that starts such processes, which lives as long as they may
  end_with_the_daemon();
  const Result<void> served = hello.work == FpgaWork::kList ? answer_list(hello) : serve(hello);
  if (!served) answer(with_error(served.error()));
  return served ? EXIT_SUCCESS : EXIT_FAILURE;
}

int say_cards(const char* folder) {
  const Result<std::vector<FpgaReady>> cards = list_cards(folder);
  if (!cards) {
    std::fprintf(stderr, "millrace-fpga: %s\n", cards.error().message.c_str());
    return EXIT_FAILURE;
  }
  for (std::size_t i = 0; i < cards->size(); ++i)
    std::printf("%zu: %s, %s, XRT %s\n", i, (*cards)[i].card, (*cards)[i].shell, (*cards)[i].library);
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace millrace::fpga

int main(int arguments, char** argument) {
  using namespace millrace;
  signal(SIGPIPE, SIG_IGN);
  fpga::find_xrt();
  FpgaHello hello;
  ssize_t bytes = 0;
  do {
    bytes = recv(kFpgaControl, &hello, sizeof hello, 0);
  } while (bytes < 0 && errno == EINTR);
  if (bytes != static_cast<ssize_t>(sizeof hello)) return fpga::say_cards(arguments > 1 ? argument[1] : ".");
  if (hello.version == kFpgaWireVersion) return fpga::run(hello);
  fpga::answer(FpgaReady{});  // whose version says it
  return EXIT_FAILURE;
}
