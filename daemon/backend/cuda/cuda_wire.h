// What the daemon and the process that owns a GPU for it say to each other: whole messages over socket pairs, and memory
// that both have mapped. Both programs are of one build; kCudaWireVersion tells where they are not. Values.
//
//   daemon                                     millrace-cuda
//   control: CudaHello ─────────────────────▶  driver, context, kernels, pinned staging
//                       ◀────────── CudaReady  it is ready, or why not
//   a half of a lane, of two:
//            files and CudaOrders into its half of the staging
//            CudaBatch ─────────────────────▶  plans, copies, launches, waits
//                       ◀─────────── CudaDone  verdicts are in the CudaOrders, tensors in the staging or where
//                                              CudaBatch::memory says
//   memory:  CudaMoves and bytes into its staging
//            CudaMemoryOrder ───────────────▶  takes, gives back, moves
//                       ◀─────────── CudaDone  with the descriptor of what was taken
//   closes its ends ────────────────────────▶  ends
//
//   a lane's staging:  0                         encoded_at()                       tensors_at()         size()
//                      │ rooms of both halves │ files of both, 0s between them │ tensors of both, in order │
//   rooms of a half:   │ CudaOrders │ CudaViews │ Operations │ CudaErased │
//
// A batch that is too large for its half has all of it, while the other half's thread of the daemon leaves it alone.
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
#include <span>
#include <type_traits>

#include "kernels/augment/operation.h"
#include "proto/base/bytes.h"

namespace millrace {

inline constexpr std::uint32_t kCudaWireVersion = 4;
inline constexpr std::uint32_t kMostCudaLanes = 4;
// Of a batch.
inline constexpr std::uint32_t kMostCudaImages = 256, kMostCudaViews = 1024, kMostCudaSteps = 8192,
                               kMostCudaErased = 4096;

// A lane has so many batches under way: one on the GPU while the next is copied and planned.
inline constexpr std::uint32_t kCudaHalves = 2;

// The process's descriptors when it begins: a socket and a staging for the memory; for each lane a staging, and a socket
// for each half.
inline constexpr int kCudaControl = 3, kCudaMemorySocket = 4, kCudaMemoryStaging = 5;
constexpr int cuda_lane_staging(std::uint32_t lane) {
  return kCudaMemoryStaging + 1 + static_cast<int>((1 + kCudaHalves) * lane);
}
constexpr int cuda_lane_socket(std::uint32_t lane, std::uint32_t half) {
  return cuda_lane_staging(lane) + 1 + static_cast<int>(half);
}

inline constexpr std::uint32_t kCudaListEnds = 0xffffffff;

// Pinned in the process for each lane, beside its staging: what is copied to the GPU of both halves' plans.
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

// An image. Its views are the next ones of the batch's.
struct CudaOrder {
  std::uint64_t at = 0;  // of the file's first byte in the encoded area
  std::uint32_t bytes = 0;
  std::uint16_t views = 1;
  std::uint16_t orientation = 1;                      // EXIF's
  std::uint16_t stored_width = 0, stored_height = 0;  // the picture has
  std::uint32_t packed = 0;                           // 1: a packed image in the file's place
  // The answer. 0: the tensors are there. Else the GPU does not make the image, and `why` says it; 2: its packed form
  // does not decode.
  std::uint32_t verdict = 0;
  char why[116] = {};
};

struct CudaBox {
  std::int32_t left = 0, top = 0, width = 0, height = 0;
};

// A tensor of an image: counted in the picture once it is turned.
struct CudaView {
  CudaBox crop;
  std::int32_t resized_width = 0, resized_height = 0;  // of the whole crop
  CudaBox window;
  CudaBox shown;  // what the tensor shows of the resized picture, which it may leave: what is there, `pad` says
  CudaBox inner;  // the window, as `shown` counts: both in the flipped picture
  std::uint64_t out_at = 0;  // where the tensor goes in CudaBatch::memory
  std::uint8_t filter = 0, flip = 0;
  std::uint8_t padded = 0, pad = 0;  // 1: `shown` counts, and how it is padded
  std::uint8_t fill[3] = {};
  std::uint8_t reserved = 0;
  std::uint32_t first_step = 0, steps = 0;
  std::uint32_t first_erased = 0, erased = 0;
};

// A part of the tensor that becomes one colour, in the tensor's units: red, green and blue, or the only channel.
struct CudaErased {
  CudaBox box;
  float value[3] = {};
};

// Enumerations are those of kernels/tensor and kernels/cuda, as numbers.
struct CudaBatch {
  std::uint64_t number = 0;  // which the answer has as well
  std::uint32_t images = 0, views = 0, steps = 0, erased = 0;
  std::uint8_t fast = 0, dtype = 0, layout = 0, channels = 0, range = 0, normalise = 0;
  std::uint8_t whole = 0;  // 1: it has all of the lane, not its half alone
  std::uint8_t reserved = 0;
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
static_assert(std::is_trivially_copyable_v<CudaOrder> && sizeof(CudaOrder) == 144);
static_assert(std::is_trivially_copyable_v<CudaView> && sizeof(CudaView) == 104);
static_assert(std::is_trivially_copyable_v<CudaErased> && sizeof(CudaErased) == 28);
static_assert(std::is_trivially_copyable_v<kernels::Operation>);
static_assert(std::is_trivially_copyable_v<CudaBatch> && sizeof(CudaBatch) == 88);
static_assert(std::is_trivially_copyable_v<CudaDone>);
static_assert(std::is_trivially_copyable_v<CudaMemoryOrder> && sizeof(CudaMemoryOrder) == 32);
static_assert(std::is_trivially_copyable_v<CudaMove> && sizeof(CudaMove) == 32 && kCudaMovedAt % 4096 == 0);

// What a batch has of a lane's staging.
struct CudaPart {
  std::uint64_t rooms_at = 0, encoded_at = 0, encoded_bytes = 0, tensors_at = 0, tensor_bytes = 0;
};

constexpr std::uint64_t in_cuda_pages(std::uint64_t bytes) {
  return (bytes + 4095) / 4096 * 4096;
}

// How a lane's staging is divided.
struct CudaStaging {
  static constexpr std::uint64_t kFilesApart = 64;  // zeroes at least, after each file
  static constexpr std::uint64_t kPage = 4096;
  // Of a half: what a batch is told by, one room after the other.
  static constexpr std::uint64_t kViews = in_cuda_pages(kMostCudaImages * sizeof(CudaOrder));
  static constexpr std::uint64_t kSteps = kViews + in_cuda_pages(kMostCudaViews * sizeof(CudaView));
  static constexpr std::uint64_t kErased = kSteps + in_cuda_pages(kMostCudaSteps * sizeof(kernels::Operation));
  static constexpr std::uint64_t kRooms = kErased + in_cuda_pages(kMostCudaErased * sizeof(CudaErased));

  std::uint64_t encoded_bytes = 0, tensor_bytes = 0;

  static constexpr std::uint64_t encoded_at() { return kCudaHalves * kRooms; }
  constexpr std::uint64_t tensors_at() const { return encoded_at() + encoded_bytes; }
  constexpr std::uint64_t size() const { return tensors_at() + tensor_bytes; }

  constexpr CudaPart half(std::uint32_t i) const {
    const std::uint64_t encoded = encoded_bytes / kCudaHalves / kPage * kPage,
                        tensors = tensor_bytes / kCudaHalves / kPage * kPage;
    return {i * kRooms, encoded_at() + i * encoded, encoded, tensors_at() + i * tensors, tensors};
  }
  // All of it, for a batch whose rooms are those of half `i`.
  constexpr CudaPart whole(std::uint32_t i) const {
    return {i * kRooms, encoded_at(), encoded_bytes, tensors_at(), tensor_bytes};
  }
};

// What a batch is told by, beside its files.
struct CudaBatchRooms {
  std::span<CudaOrder> orders;
  std::span<CudaView> views;
  std::span<kernels::Operation> steps;
  std::span<CudaErased> erased;
};

// Those that begin there, at a page.
inline CudaBatchRooms rooms_at(std::byte* at) {
  return {{reinterpret_cast<CudaOrder*>(at), kMostCudaImages},
          {reinterpret_cast<CudaView*>(at + CudaStaging::kViews), kMostCudaViews},
          {reinterpret_cast<kernels::Operation*>(at + CudaStaging::kSteps), kMostCudaSteps},
          {reinterpret_cast<CudaErased*>(at + CudaStaging::kErased), kMostCudaErased}};
}

}  // namespace millrace
