// Memory of the host that is registered: by whole pages, and as it is mapped.
#include <sys/mman.h>

#include "tests/unit/support/cuda_driver/scenes/scenes.h"

namespace millrace::cuda_scenes {
namespace {

constexpr std::size_t kHostPage = 4096;

// So many pages of zeros, and one behind them that nobody may touch.
class Pages {
 public:
  explicit Pages(std::size_t count) : size_(count * kHostPage) {
    void* const at = mmap(nullptr, size_ + kHostPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    need(at == MAP_FAILED ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS, "mmap");
    begin_ = static_cast<std::byte*>(at);
    need(mprotect(begin_ + size_, kHostPage, PROT_NONE) == 0 ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN, "mprotect");
  }
  ~Pages() { munmap(begin_, size_ + kHostPage); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  std::byte* operator[](std::size_t page) const { return begin_ + page * kHostPage; }
  void protect(std::size_t page) const {
    need(mprotect((*this)[page], kHostPage, PROT_READ) == 0 ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN, "mprotect");
  }

 private:
  std::size_t size_;
  std::byte* begin_ = nullptr;
};

int registering(Arguments) {
  const Gpu gpu;
  const Driver& cu = gpu.cu;
  const Pages pages(5);
  const auto enter = [&](const char* what, std::byte* at, std::size_t size) {
    say(what, cu.cuMemHostRegister_v2(at, size, CU_MEMHOSTREGISTER_PORTABLE));
  };
  CUdeviceptr at = 0;
  say("address of what is not", cu.cuMemHostGetDevicePointer_v2(&at, pages[1], 0));
  enter("from within page 1 to within page 2", pages[1] + 100, kHostPage);
  say("address", cu.cuMemHostGetDevicePointer_v2(&at, pages[1] + 100, 0));
  enter("the same", pages[1] + 100, kHostPage);
  enter("beside it in page 1", pages[1], 100);
  enter("beside it in page 2", pages[2] + 100, 1);
  enter("around it", pages[0], 4 * kHostPage);
  enter("to the first byte of page 1", pages[0] + 8, kHostPage - 7);
  enter("to the end of page 0", pages[0] + 8, kHostPage - 8);
  enter("from page 3", pages[3], 1);
  say("unregister by its page", cu.cuMemHostUnregister(pages[1]));
  say("unregister within", cu.cuMemHostUnregister(pages[1] + 101));
  say("unregister", cu.cuMemHostUnregister(pages[1] + 100));
  say("unregister twice", cu.cuMemHostUnregister(pages[1] + 100));
  enter("both pages again", pages[1], 2 * kHostPage);
  return 0;
}

int registering_read_only(Arguments) {
  const Gpu gpu;
  const Driver& cu = gpu.cu;
  const Pages pages(4);
  pages.protect(1);
  const auto enter = [&](const char* what, std::size_t page, std::size_t count, unsigned flags) {
    const CUresult result = cu.cuMemHostRegister_v2(pages[page], count * kHostPage, flags);
    say(what, result);
    if (result == CUDA_SUCCESS) need(cu.cuMemHostUnregister(pages[page]), "cuMemHostUnregister");
  };
  enter("writable", 2, 2, 0);
  enter("read-only", 1, 1, 0);
  enter("read-only among others", 0, 4, 0);
  enter("read-only, with the flag", 1, 1, CU_MEMHOSTREGISTER_READ_ONLY);
  enter("among others, with the flag", 0, 4, CU_MEMHOSTREGISTER_READ_ONLY | CU_MEMHOSTREGISTER_PORTABLE);
  enter("without access", 4, 1, 0);
  enter("into what is without access", 3, 2, CU_MEMHOSTREGISTER_READ_ONLY);
  return 0;
}

constexpr Scene kRegisteringScenes[] = {{"registering", registering}, {"registering read-only", registering_read_only}};

}  // namespace

std::span<const Scene> registering_scenes() {
  return kRegisteringScenes;
}

}  // namespace millrace::cuda_scenes
