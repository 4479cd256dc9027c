#include "hls/card/shim/control.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "hls/card/shim/descriptor.h"

namespace millrace::card {
namespace {

struct Page {
  CardControl cards[kMostCards];
};

[[noreturn]] void give_up(const char* what) {
  std::fprintf(stderr, "simulated cards: the control file %s: %s\n", settings().control.c_str(), what);
  std::abort();
}

Page* map_page() {
  const std::string& path = settings().control;
  const Descriptor file(path.empty() ? memfd_create("card control", MFD_CLOEXEC)
                                     : open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file || ftruncate(file.get(), sizeof(Page)) != 0) give_up("cannot be opened");
  void* const at = mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (at == MAP_FAILED) give_up("cannot be mapped");
  return static_cast<Page*>(at);
}

}  // namespace

CardControl& control_of(unsigned card) {
  static Page* const page = map_page();
  return page->cards[card];
}

std::uint64_t milliseconds_now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
}

}  // namespace millrace::card
