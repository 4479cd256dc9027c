// The session's segment, byte by byte: what the daemon writes and a client reads. Fixed-width fields and offsets only.
//
//   0           SegmentHeader       64 B   who I am; constant once the descriptor is handed over
//   64          SlotHeader[slots]   64 B each: the slot's state and generation
//   data_offset slot 0              slot_bytes; page-aligned
//   + stride    slot 1 ...          stride = slot_bytes rounded up to a page
//
//   The object may be shorter for a while: the daemon fills slots in their order, and the rest behind the opening.
//
//   inside a slot:   tensor bytes | up to 63 B | SampleRecord[samples]       (the handle gives both offsets)
//
//   kFree ──lease: generation + 1──▶ kFilling ──seal──▶ kSealed ──release, reclaim──▶ kFree
//                                       └──────────────release, reclaim────────────────▲
//   Every edge is moved by the daemon. The client's descriptor is read-only: it maps it shared and read-only, or copy
//   on write.
//
// A handle is good while SlotHeader.generation equals its own and state is kSealed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "proto/base/backend_name.h"
#include "proto/base/bytes.h"

namespace millrace::shm {

inline constexpr std::uint64_t kSegmentMagic = 0x31474553'4C4C494D;  // "MILLSEG1", little-endian
inline constexpr std::uint32_t kSegmentVersion = 1;
inline constexpr std::uint64_t kPageBytes = 4096;
inline constexpr std::uint64_t kRecordAlignment = 64;
inline constexpr std::uint64_t kImageAlignment = 64;  // of each image in a packed tensor

struct SegmentHeader {
  std::uint64_t magic;    // kSegmentMagic
  std::uint32_t version;  // kSegmentVersion
  std::uint32_t slots;
  std::uint64_t segment_bytes;  // the whole object
  std::uint64_t slot_bytes;     // usable in each slot
  std::uint64_t slot_stride;    // from one slot's data to the next
  std::uint64_t data_offset;    // of slot 0's data from the segment's start
  std::uint64_t session_id;
  std::uint64_t reserved;  // 0
};
static_assert(sizeof(SegmentHeader) == 64 && std::is_trivial_v<SegmentHeader> &&
              std::is_standard_layout_v<SegmentHeader>);
static_assert(offsetof(SegmentHeader, slots) == 12 && offsetof(SegmentHeader, segment_bytes) == 16 &&
              offsetof(SegmentHeader, data_offset) == 40 && offsetof(SegmentHeader, session_id) == 48);

enum class SlotState : std::uint32_t { kFree = 0, kFilling = 1, kSealed = 2 };

struct SlotHeader {
  // Writer: the daemon, through std::atomic_ref. Reader: the client, with acquire. The release store of kSealed
  // publishes the generation, the tensor and the records.
  std::uint32_t state;       // SlotState
  std::uint32_t samples;     // records in the slot, once sealed
  std::uint64_t generation;  // grows by one at every lease, begins at 1
  std::uint64_t tensor_bytes;
  std::uint64_t records_offset;  // from the segment's start
  std::uint64_t sealed_at_ns;    // CLOCK_MONOTONIC
  std::uint64_t reserved[3];     // 0
};
static_assert(sizeof(SlotHeader) == 64 && std::is_trivial_v<SlotHeader> && std::is_standard_layout_v<SlotHeader>);
static_assert(offsetof(SlotHeader, generation) == 8 && offsetof(SlotHeader, tensor_bytes) == 16 &&
              offsetof(SlotHeader, records_offset) == 24 && offsetof(SlotHeader, sealed_at_ns) == 32);
static_assert(std::atomic_ref<std::uint32_t>::is_always_lock_free &&
              std::atomic_ref<std::uint64_t>::is_always_lock_free);

// What happened to one sample; one beside each image of the tensor, in order.
struct SampleRecord {
  std::uint64_t id;
  std::int64_t label;
  std::uint64_t pixels_offset;  // from the start of the memory that the tensor is in: mostly the segment
  std::uint64_t pixels_bytes;
  std::uint32_t width;  // of the image in the tensor, pixels
  std::uint32_t height;
  std::uint32_t source_width;  // stored in the file, before orientation; 0 when not known
  std::uint32_t source_height;
  std::int32_t crop_left;  // in the oriented image
  std::int32_t crop_top;
  std::int32_t crop_width;
  std::int32_t crop_height;
  std::uint32_t fetch_us;  // reading the encoded bytes
  std::uint32_t queue_us;  // from the bytes being there to a lane beginning
  std::uint32_t decode_us;
  std::uint32_t transform_us;   // resample, flip, normalise, store
  std::uint16_t status;         // millrace::Code of what went wrong, 0: nothing
  std::uint8_t flags;           // SampleFlags
  std::uint8_t orientation;     // EXIF, 1 ... 8; 0 when not known
  char backend[12];             // "cpu", zero-terminated
  std::uint32_t index;          // position in the submitted batch
  std::uint32_t resized_width;  // of the whole crop, as the resize made it; 0: not known
  std::uint32_t resized_height;
  std::int32_t
      window_left;          // where the image in the tensor begins in that, before it was flipped; less than 0 where it
  std::int32_t window_top;  // is padded
  std::uint8_t unpacked;    // millrace::WhyUnpacked; 0: nothing is said, as by daemons of before
  std::uint8_t reserved[11];  // 0
};
static_assert(sizeof(SampleRecord) == 128 && std::is_trivial_v<SampleRecord> &&
              std::is_standard_layout_v<SampleRecord>);
static_assert(offsetof(SampleRecord, width) == 32 && offsetof(SampleRecord, crop_left) == 48 &&
              offsetof(SampleRecord, fetch_us) == 64 && offsetof(SampleRecord, status) == 80 &&
              offsetof(SampleRecord, backend) == 84 && offsetof(SampleRecord, index) == 96 &&
              offsetof(SampleRecord, resized_width) == 100 && offsetof(SampleRecord, unpacked) == 116);

static_assert(sizeof(SampleRecord::backend) == kBackendNameMost + 1);

enum SampleFlags : std::uint8_t {
  kFlipped = 1,
  kZeroed = 2,       // OnError zero: the pixels are zero bytes
  kSubstituted = 4,  // OnError substitute: another sample's pixels, id and label
};

// --- where things lie: computed here and nowhere else ---

// Of a segment of `slots` slots of `slot_bytes` each, which is no larger than segment_bytes() can count:

constexpr Bytes slot_stride(Bytes slot_bytes) {
  return align_up(slot_bytes, kPageBytes);
}

// Of slot 0's data from the segment's start.
constexpr Bytes data_offset(std::uint32_t slots) {
  return align_up(Bytes{sizeof(SegmentHeader)} + Bytes{sizeof(SlotHeader)} * slots, kPageBytes);
}

constexpr std::uint64_t slot_offset(std::uint32_t slots, Bytes slot_bytes, std::uint32_t slot) {
  return (data_offset(slots) + slot_stride(slot_bytes) * slot).count;
}

// The whole segment, headers included; what no 64 bits can count is the largest number, which no budget has.
constexpr Bytes segment_bytes(std::uint32_t slots, Bytes slot_bytes) {
  constexpr std::uint64_t kUncountable = std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t room = kUncountable - data_offset(slots).count;
  if (slot_bytes.count > kUncountable - kPageBytes) return {kUncountable};
  const Bytes stride = slot_stride(slot_bytes);
  if (slots != 0 && stride.count > room / slots) return {kUncountable};
  return data_offset(slots) + stride * slots;
}

// Inside a slot, of a batch that memory could hold:

// Of the first record from the slot's first byte.
constexpr Bytes records_offset(Bytes tensor) {
  return align_up(tensor, kRecordAlignment);
}

// What a slot needs for a tensor and its records.
constexpr Bytes slot_bytes(Bytes tensor, std::uint32_t samples) {
  return records_offset(tensor) + Bytes{sizeof(SampleRecord)} * samples;
}

// The same for `samples` images of `image` bytes at most, in either packing.
constexpr Bytes slot_bytes_of_images(Bytes image, std::uint32_t samples) {
  return slot_bytes(align_up(image, kImageAlignment) * samples, samples);
}

// What an image takes in a slot beside its pixels, at most: its record, and the gap to the next image.
inline constexpr Bytes kMostBesidePixels{sizeof(SampleRecord) + kImageAlignment};

// The worked example of README.md.
static_assert(slot_bytes(301'056_B, 2) == 301'312_B && records_offset(301'056_B) == 301'056_B);
static_assert(slot_stride(301'312_B) == 303'104_B && data_offset(2) == 4096_B);
static_assert(slot_offset(2, 301'312_B, 1) == 307'200 && segment_bytes(2, 301'312_B) == 610'304_B);
static_assert(records_offset(0_B) == 0_B && records_offset(1_B) == 64_B && records_offset(64_B) == 64_B);
static_assert(data_offset(63) == 4096_B && data_offset(64) == 8192_B);

}  // namespace millrace::shm
