// The kernels that this project's FPGA images have: the one list. The xclbin's metadata, the adapters that call a kernel
// by its registers, the build's connectivity files and the host's argument numbers all come from here. C++14. Immutable.
//
//   image ──has──▶ kernel ──in──▶ compute units of each card          arguments: the same for every kernel
//
// A kernel is a function of this shape, in hls/:
//
//   extern "C" void NAME(const Burst* commands, const Burst* encoded, Burst* tensors, Burst* completions,
//                        std::uint32_t commands_bytes, std::uint32_t encoded_bytes, std::uint32_t tensors_bytes,
//                        std::uint32_t completions_bytes, std::uint32_t phase);
#pragma once

#include <cstddef>
#include <cstdint>

#include "hls/wire/words.h"

namespace millrace {
namespace hls {

enum class Access : std::uint8_t { kScalar, kRead, kWrite };

// `offset`: of its register. Pointers have 64 bits and a gap of 32, as Vitis HLS places them.
struct Argument {
  const char* name;
  Access access;
  std::uint16_t offset;
};

enum ArgumentIndex : std::uint8_t {
  kCommands,
  kEncoded,
  kTensors,
  kCompletions,
  kCommandsBytes,
  kEncodedBytes,
  kTensorsBytes,
  kCompletionsBytes,
  kPhase,
  kArgumentCount
};

constexpr Argument kArguments[kArgumentCount] = {
    {"commands", Access::kRead, 0x10},         {"encoded", Access::kRead, 0x1c},
    {"tensors", Access::kWrite, 0x28},         {"completions", Access::kWrite, 0x34},
    {"commands_bytes", Access::kScalar, 0x40}, {"encoded_bytes", Access::kScalar, 0x48},
    {"tensors_bytes", Access::kScalar, 0x50},  {"completions_bytes", Access::kScalar, 0x58},
    {"phase", Access::kScalar, 0x60},
};

constexpr std::uint32_t kRegisterBytes = 0x1000;  // of a compute unit

// An FPGA image (a "mirror"): what a card is programmed with. One kernel each, in as many units as `units` says.
struct Image {
  const char* name;    // of its file: NAME.xclbin
  const char* kernel;  // of its function
  Source makes;        // what its kernel takes
  bool makes_nothing;  // it completes every image without a look at it: what a host's path costs
};

constexpr Image kImages[] = {
    {"jpeg", "decode_jpeg", Source::kJpegScan, false},
    {"packed", "decode_packed", Source::kPacked, false},
    {"rows", "resample_rows", Source::kRows, false},
    {"noop", "answer", Source::kJpegScan, true},
};
constexpr std::size_t kImageCount = sizeof kImages / sizeof kImages[0];

}  // namespace hls
}  // namespace millrace
