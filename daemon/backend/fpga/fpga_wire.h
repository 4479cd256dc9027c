// What the daemon and the process that owns a card for it say to each other: whole messages over socket pairs, and memory
// that both have mapped. Both programs are of one build; kFpgaWireVersion tells where they are not. Values.
//
//   daemon                                     millrace-fpga
//   control: FpgaHello ─────────────────────▶  opens the card, programs it, takes its buffers
//                       ◀────────── FpgaReady  it is ready, or why not
//   a lane:  files and FpgaOrders into the staging
//            FpgaBatch ─────────────────────▶  plans, copies to the card, starts, waits
//                       ◀─────────── FpgaDone  verdicts are in the FpgaOrders, tensors in the staging
//   closes its ends ────────────────────────▶  ends
//
//   a lane's staging:  0                 encoded_at()                      tensors_at()         size()
//                      │ FpgaOrder, ... │ files, 0s between them          │ tensors, where the orders say │
//
// The process has hostile bytes and a library that is not ours in it: the daemon reads no size, place or text from there
// without a check.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "proto/base/bytes.h"

namespace millrace {

inline constexpr std::uint32_t kFpgaWireVersion = 1;
inline constexpr std::uint32_t kMostFpgaLanes = 8;
inline constexpr std::uint32_t kMostFpgaImages = 256;  // of a batch

// The process's descriptors when it begins: for each lane a socket and a staging.
inline constexpr int kFpgaControl = 3;
constexpr int fpga_lane_socket(std::uint32_t lane) {
  return kFpgaControl + 1 + 2 * static_cast<int>(lane);
}
constexpr int fpga_lane_staging(std::uint32_t lane) {
  return fpga_lane_socket(lane) + 1;
}

inline constexpr std::uint32_t kFpgaListEnds = 0xffffffff;

// What a card is programmed with; each has a file in the folder of images (hls/table/kernel_table.h).
enum class FpgaImage : std::uint32_t { kJpeg, kPacked };
inline constexpr std::uint32_t kFpgaImages = 2;

enum class FpgaWork : std::uint32_t { kList, kServe };  // say which cards there are, and end; serve one

struct FpgaHello {
  std::uint32_t version = kFpgaWireVersion;
  FpgaWork work = FpgaWork::kList;
  char card[32] = {};  // its place on the bus, as FpgaReady said it
  std::uint32_t lanes = 0;
  std::uint32_t hang_milliseconds = 0;                // for a batch, once it is on the card
  std::uint64_t encoded_bytes = 0, tensor_bytes = 0;  // of a lane's staging
  FpgaImage image = FpgaImage::kJpeg;                 // to begin with
  std::uint32_t swap = 0;                             // and as which swap it counts
  char images[512] = {};                              // the folder
};

// What is known of an image's file. All zero: there is none.
struct FpgaImageFile {
  char uuid[40] = {};
  std::uint32_t units = 0;  // compute units
};

// One for each card after kList, and a last one without; one after kServe.
struct FpgaReady {
  std::uint32_t version = kFpgaWireVersion;
  std::uint32_t code = 0;  // 0: what follows holds; kFpgaListEnds; else a Code, and `text` says why
  char card[32] = {};
  char shell[96] = {};
  char library[32] = {};  // XRT's version
  FpgaImageFile images[kFpgaImages];
  char text[300] = {};
};

struct FpgaOrder {
  std::uint64_t at = 0;         // of the file's first byte in the encoded area
  std::uint64_t tensor_at = 0;  // in the tensors' area; a multiple of 64
  std::uint32_t bytes = 0;
  std::uint32_t flip = 0;
  std::int32_t crop_left = 0, crop_top = 0, crop_width = 0, crop_height = 0;
  std::int32_t resized_width = 0, resized_height = 0;  // of the whole crop
  std::int32_t window_left = 0, window_top = 0, window_width = 0, window_height = 0;
  std::uint32_t stored_width = 0, stored_height = 0;  // the picture has
  std::uint64_t tensor_bytes = 0;
  // The answer. sum: of a tensor that is there, as the card has written it (hls/wire/words.h, Completion::sum). verdict: 0,
  // the tensor is there; else it is none for the card, and why: 2, what stood in for the file is no use.
  std::uint32_t sum = 0;
  std::uint32_t verdict = 0;
  char why[104] = {};
};

// Enumerations are those of kernels/tensor, as numbers.
struct FpgaBatch {
  std::uint64_t number = 0;  // which the answer has as well
  std::uint32_t images = 0;
  FpgaImage image = FpgaImage::kJpeg;  // what the card has to be programmed with
  std::uint8_t filter = 0, dtype = 0, layout = 0, channels = 0, range = 0, normalise = 0, reserved[2] = {};
  // How often the daemon has changed its mind about the image. A batch of an earlier time than the card's is refused, one
  // of a later time has the card programmed once nothing is under way there.
  std::uint32_t swap = 0, more_reserved = 0;
  std::uint64_t encoded_bytes = 0, tensor_bytes = 0;  // of the staging in use, from the beginning of each part
  float mean[3] = {}, std[3] = {};
};

struct FpgaDone {
  std::uint64_t number = 0;
  std::uint32_t code = 0;     // kExhausted: the card has been programmed for others meanwhile; kUnsupported: it
                              // is not made here; kNotFound: the card cannot be
                              // programmed for it; kUnavailable: the card is lost
  std::uint32_t swapped = 0;  // 1: the card was programmed anew for it
  std::uint64_t busy_microseconds = 0;  // from its start on the card to its end
  std::uint64_t moved_bytes = 0;        // to the card and back
  // Lately; of no sensor, 0.
  std::int32_t celsius = 0, milliwatts = 0;
  char text[300] = {};
};

static_assert(std::is_trivially_copyable_v<FpgaHello> && sizeof(FpgaHello) == 584);
static_assert(std::is_trivially_copyable_v<FpgaReady>);
static_assert(std::is_trivially_copyable_v<FpgaOrder> && sizeof(FpgaOrder) == 192);
static_assert(std::is_trivially_copyable_v<FpgaBatch> && sizeof(FpgaBatch) == 72);
static_assert(std::is_trivially_copyable_v<FpgaDone>);

// How a lane's staging is divided. Each part begins at a page, as the library wants memory of which it makes a buffer.
struct FpgaStaging {
  static constexpr std::uint64_t kFilesApart = 64;  // zeroes at least, after each file
  static constexpr std::uint64_t kPage = 4096;

  std::uint64_t encoded_bytes = 0, tensor_bytes = 0;  // multiples of kPage

  static constexpr std::uint64_t encoded_at() {
    return (kMostFpgaImages * sizeof(FpgaOrder) + kPage - 1) / kPage * kPage;
  }
  constexpr std::uint64_t tensors_at() const { return encoded_at() + encoded_bytes; }
  constexpr std::uint64_t size() const { return tensors_at() + tensor_bytes; }
};

}  // namespace millrace
