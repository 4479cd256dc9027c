// millrace-decoder: decodes what its lane puts into their common memory, with libjpeg-turbo, libspng, libwebp and what else
// library_decoder.h has, in a sandbox. The daemon starts it (decoder_child.h); by hand it is of no use.
//
// It believes the lane, and nothing of the file. One thread.
#include <malloc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>

#include "daemon/backend/cpu/decoders/heif/avif_decoder.h"
#include "daemon/backend/cpu/decoders/heif/heic_decoder.h"
#include "daemon/backend/cpu/decoders/library_decoder.h"
#include "daemon/backend/cpu/decoders/tiff/tiff_decoder.h"
#include "daemon/backend/cpu/isolation/decoder_wire.h"
#include "daemon/backend/cpu/isolation/sandbox.h"

namespace millrace {
namespace {

// What one image takes at a time and the next one will, too, is kept; what a large one took is the kernel's again.
constexpr int kLargeBlock = 4 << 20;

void set_text(DecoderReply& reply, const Error& error) {
  reply.code = static_cast<std::uint32_t>(error.code);
  const std::size_t length = std::min(error.message.size(), sizeof reply.text - 1);
  std::memcpy(reply.text, error.message.data(), length);
}

DecodeRequest decode_request(const DecoderRequest& request, const std::uint8_t* memory) {
  return {.bytes_untrusted = {reinterpret_cast<const std::byte*>(memory), request.file_bytes},
          .stored = {request.width, request.height},
          .box = {request.box_left, request.box_top, request.box_width, request.box_height},
          .deadline = Clock::time_point(std::chrono::nanoseconds(request.deadline_ns)),
          .codec = {request.codec},
          .reduction = request.reduction,
          .indices = request.indices != 0,
          .target = static_cast<kernels::Target>(request.target)};
}

class Decoder {
 public:
  explicit Decoder(std::uint8_t* memory) : memory_(memory) {}

  DecoderReply answer(const DecoderRequest& request) {
    DecoderReply reply;
    try {
      const Result<void> done = request.work == DecoderWork::kPack ? pack(request, reply) : decode(request, reply);
      if (!done) set_text(reply, done.error());
    } catch (const std::bad_alloc&) {
      set_text(reply, memory_error());
    }
    return reply;
  }

 private:
  Result<void> decode(const DecoderRequest& request, DecoderReply& reply) {
    PixelBuffer buffer(memory_ + request.room_at, request.room);
    MILLRACE_TRY(const kernels::U8View pixels,
                 libraries_.decode(static_cast<ImageFormat>(request.format), decode_request(request, memory_), buffer));
    reply.at = static_cast<std::uint64_t>(pixels.data - memory_);
    reply.stride = pixels.stride;
    reply.channels = pixels.channels;
    return {};
  }

  Result<void> pack(const DecoderRequest& request, DecoderReply& reply) {
    if (!encoder_) encoder_ = std::make_unique<kernels::packed::Encoder>();
    MILLRACE_TRY(const std::vector<std::uint8_t> packed, libraries_.pack(decode_request(request, memory_), *encoder_));
    encoder_->trim(kLargeBlock);
    if (packed.size() > request.room) return memory_error();
    std::memcpy(memory_ + request.room_at, packed.data(), packed.size());
    reply.at = request.room_at;
    reply.bytes = packed.size();
    return {};
  }

  std::uint8_t* const memory_;
  DecodingInLane libraries_;
  std::unique_ptr<kernels::packed::Encoder> encoder_;  // nullptr: nothing was packed yet
};

void send(const DecoderReply& reply) {
  if (::send(kDecoderChannel, &reply, sizeof reply, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof reply)) ::_exit(1);
}

// false: the lane has closed its end.
bool receive(DecoderRequest& request) {
  return ::recv(kDecoderChannel, &request, sizeof request, 0) == static_cast<ssize_t>(sizeof request);
}

// All of what the lane may ever make of it; what it has made so far can be touched.
std::uint8_t* map(std::uint64_t reach) {
  void* const memory = ::mmap(nullptr, reach, PROT_READ | PROT_WRITE, MAP_SHARED, kDecoderMemory, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<std::uint8_t*>(memory);
}

// dav1d says on stderr what it finds wrong with a file, for which there is no call in the sandbox: nobody hears it.
void silence_libraries() {
  cookie_io_functions_t nobody{};
  nobody.write = [](void*, const char*, std::size_t bytes) { return static_cast<ssize_t>(bytes); };
  std::FILE* const silent = ::fopencookie(nullptr, "w", nobody);
  if (silent == nullptr) return;
  std::setvbuf(silent, nullptr, _IONBF, 0);
  stderr = silent;
}

[[noreturn]] void run(std::uint64_t reach, const SandboxLimits& limits) {
  ::mallopt(M_MMAP_THRESHOLD, kLargeBlock);
  ::mallopt(M_TRIM_THRESHOLD, kLargeBlock);
  ::prctl(PR_SET_NAME, "millrace-decoder");  // it was started by a descriptor, whose number would be its name
  std::set_terminate(std::abort);            // without words, for which there is no call in the sandbox
  if (DecoderRequest go; !receive(go)) ::_exit(0);
  DecoderReply ready;
  std::uint8_t* const memory = map(reach);
  prepare_tiff();
  prepare_avif();
  prepare_heic();
  silence_libraries();
  if (memory == nullptr) {
    set_text(ready, errno_error("mapping the memory of the lane", errno));
  } else if (const Result<void> inside = enter_sandbox(kDecoderChannel, limits); !inside) {
    set_text(ready, inside.error());
  }
  send(ready);
  if (ready.code != 0) ::_exit(1);
  Decoder decoder(memory);
  for (DecoderRequest request; receive(request);) send(decoder.answer(request));
  ::_exit(0);
}

}  // namespace
}  // namespace millrace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fputs("millrace-decoder is started by millraced, where its settings say cpu.isolation = \"process\"\n",
               stderr);
    return 2;
  }
  const auto number = [&](int i) { return std::strtoull(argv[i], nullptr, 10); };
  millrace::run(number(1), {.data_bytes = number(2), .cpu_seconds = static_cast<std::uint32_t>(number(3))});
}
