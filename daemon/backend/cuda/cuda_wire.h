// What the daemon and the process that owns a GPU for it say to each other: whole messages over socket pairs, and memory
// that both have mapped. Both programs are of one build; kCudaWireVersion tells where they are not. Values.
//
//   daemon                                     millrace-cuda
//   control: CudaHello ─────────────────────▶  driver, context, kernels, pinned staging
//                       ◀────────── CudaReady  it is ready, or why not
//   a lane:  files and CudaOrders into the staging
//            CudaBatch ─────────────────────▶  plans, copies, launches, waits
//                       ◀─────────── CudaDone  verdicts are in the CudaOrders, tensors in the staging or where
//                                              CudaBatch::memory says
//   memory:  CudaMoves and bytes into its staging
//            CudaMemoryOrder ───────────────▶  takes, gives back, moves
//                       ◀─────────── CudaDone  with the descriptor of what was taken
//   closes its ends ────────────────────────▶  ends
//
//   a lane's staging:  0                 encoded_at()             tensors_at()         size()
//                      │ CudaOrder, ... │ files, 0s between them │ tensors, in order   │
//
//   the memory's:      0                 kCudaMovedAt                           kCudaMovedAt + kCudaMoving
//                      │ CudaMove, ...   │ bytes that go up                     │
//
// A packed image (kernels/packed) whose checksum was compared may stand in for a file.
//
// The process has hostile bytes and a driver that is not ours in it: the daemon reads no size, place or text from there
// without a check.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "proto/base/bytes.h"

namespace millrace {

inline constexpr std::uint32_t kCudaWireVersion = 3;
inline constexpr std::uint32_t kMostCudaLanes = 4;
inline constexpr std::uint32_t kMostCudaImages = 256;  // of a batch

// The process's descriptors when it begins: a socket and a staging for the memory, and for each lane.
inline constexpr int kCudaControl = 3, kCudaMemorySocket = 4, kCudaMemoryStaging = 5;
constexpr int cuda_lane_socket(std::uint32_t lane) {
  return kCudaMemoryStaging + 1 + 2 * static_cast<int>(lane);
}
constexpr int cuda_lane_staging(std::uint32_t lane) {
  return cuda_lane_socket(lane) + 1;
}

inline constexpr std::uint32_t kCudaListEnds = 0xffffffff;

// Pinned in the process for each lane, beside its staging: what is copied to the GPU of a batch's plan.
inline constexpr Bytes kCudaPlans = 16_MiB;

enum class CudaWork : std::uint32_t { kList, kServe };  // say which GPUs there are, and end; serve one

struct CudaHello {
  std::uint32_t version = kCudaWireVersion;
  CudaWork work = CudaWork::kList;
  std::uint8_t uuid[16] = {};
  std::uint32_t lanes = 0, reserved = 0;
  std::uint64_t encoded_bytes = 0, tensor_bytes = 0;  // of a lane's staging
  std::uint64_t device_bytes = 0;                     // of the GPU's memory that a lane may take
};

// One for each GPU after kList, and a last one without; the GPU's own after kServe.
struct CudaReady {
  std::uint32_t version = kCudaWireVersion;
  std::uint32_t code = 0;  // 0: what follows holds; kCudaListEnds; else a Code, and `text` says why
  std::uint8_t uuid[16] = {};
  std::uint64_t memory_bytes = 0;
  std::int32_t ordinal = 0, major = 0, minor = 0, multiprocessors = 0, driver_version = 0;
  char name[96] = {};
  char text[300] = {};
};

struct CudaOrder {
  std::uint64_t at = 0;  // of the file's first byte in the encoded area
  std::uint32_t bytes = 0;
  std::uint16_t flip = 0;
  std::uint16_t orientation = 1;  // EXIF's; what follows counts in the picture once it is turned
  std::int32_t crop_left = 0, crop_top = 0, crop_width = 0, crop_height = 0;
  std::int32_t resized_width = 0, resized_height = 0;  // of the whole crop
  std::int32_t window_left = 0, window_top = 0, window_width = 0, window_height = 0;
  std::uint16_t stored_width = 0, stored_height = 0;  // the picture has
  std::uint32_t packed = 0;                           // 1: a packed image in the file's place
  std::uint64_t out_at = 0;                           // where the tensor goes in CudaBatch::memory
  // The answer: 0, the tensor is there; else it is none for the GPU, and why: 2, the packed image is no use.
  std::uint32_t verdict = 0;
  char why[116] = {};
};

// Enumerations are those of kernels/tensor and kernels/cuda, as numbers.
struct CudaBatch {
  std::uint64_t number = 0;  // which the answer has as well
  std::uint32_t images = 0;
  std::uint32_t width = 0, height = 0;  // of each tensor
  std::uint8_t filter = 0, fast = 0, dtype = 0, layout = 0, channels = 0, range = 0, normalise = 0, reserved = 0;
  std::uint64_t encoded_bytes = 0;
  float mean[3] = {}, std[3] = {};
  std::uint32_t patch_width = 0, patch_height = 0, patch_merge = 0, patch_temporal = 0;  // all 0: no patches
  std::uint64_t memory = 0;  // where the tensors go: 0, the staging; else what a CudaMemoryOrder took
};

struct CudaDone {
  std::uint64_t number = 0;
  // kExhausted: too much at once for the memory of the GPU that there is; kUnsupported: there is none; kNotFound: the
  // memory that is named is not there; kUnavailable: the device is lost.
  std::uint32_t code = 0;
  char text[300] = {};
};

// What sessions' tensors lie in, on the GPU. Numbers are the daemon's and never come twice, whichever process takes it.
enum class CudaMemoryWork : std::uint32_t {
  kTake,  // `bytes` of zeroes, as `memory`; the answer has a descriptor, by which other processes map it
  kGive,  // `memory` is no more needed here. Answered as well when it is not there
  kMove   // the first `moves` of the staging, in order
};
struct CudaMemoryOrder {
  std::uint64_t number = 0;  // which the answer has as well
  CudaMemoryWork work = CudaMemoryWork::kTake;
  std::uint32_t moves = 0;
  std::uint64_t memory = 0, bytes = 0;
};

enum class CudaMoveFrom : std::uint32_t { kZeroes, kStaging, kMemory };
struct CudaMove {
  std::uint64_t to = 0, from = 0, bytes = 0;  // from: in what was moved into the staging, or in the memory
  CudaMoveFrom where = CudaMoveFrom::kZeroes;
  std::uint32_t reserved = 0;
};

inline constexpr std::uint32_t kMostCudaMoves = 1024;
inline constexpr std::uint64_t kCudaMovedAt = kMostCudaMoves * sizeof(CudaMove);
inline constexpr Bytes kCudaMoving = 8_MiB;
inline constexpr Bytes kCudaMemoryStagingBytes{kCudaMovedAt + kCudaMoving.count};

static_assert(std::is_trivially_copyable_v<CudaHello> && sizeof(CudaHello) == 56);
static_assert(std::is_trivially_copyable_v<CudaReady> && sizeof(CudaReady) == 448);
static_assert(std::is_trivially_copyable_v<CudaOrder> && sizeof(CudaOrder) == 192);
static_assert(std::is_trivially_copyable_v<CudaBatch> && sizeof(CudaBatch) == 88);
static_assert(std::is_trivially_copyable_v<CudaDone>);
static_assert(std::is_trivially_copyable_v<CudaMemoryOrder> && sizeof(CudaMemoryOrder) == 32);
static_assert(std::is_trivially_copyable_v<CudaMove> && sizeof(CudaMove) == 32 && kCudaMovedAt % 4096 == 0);

// How a lane's staging is divided.
struct CudaStaging {
  static constexpr std::uint64_t kFilesApart = 64;  // zeroes at least, after each file
  static constexpr std::uint64_t kPage = 4096;

  std::uint64_t encoded_bytes = 0, tensor_bytes = 0;

  static constexpr std::uint64_t encoded_at() {
    return (kMostCudaImages * sizeof(CudaOrder) + kPage - 1) / kPage * kPage;
  }
  constexpr std::uint64_t tensors_at() const { return encoded_at() + encoded_bytes; }
  constexpr std::uint64_t size() const { return tensors_at() + tensor_bytes; }
};

}  // namespace millrace
