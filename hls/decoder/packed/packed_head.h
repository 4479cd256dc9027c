// The head of a packed image (kernels/packed/README.md), as hostile as the rest of it. Thread-safe: plain functions.
#pragma once

#include "hls/base/memory.h"
#include "hls/decoder/job.h"

namespace millrace {
namespace hls {

constexpr std::uint32_t kPackedHead = 40;                      // bytes
constexpr std::uint32_t kPackedTable = 2 * kCoefficients;      // of quantisation
constexpr int kGroupBlocks = 32;                               // in a group, at most
constexpr std::uint32_t kLeastPackedStart = kGroupBlocks * 8;  // of the first group

// A run of bytes anywhere in memory, up to eight at once.
inline std::uint64_t bytes_at(const ReadPort& port, std::uint32_t byte) {
  const Burst word = port.read(byte / kBurstBytes);
  const std::uint32_t at = byte % kBurstBytes, low = at % 8 * 8;
  const std::uint64_t next = at / 8 < 7 ? word.part[(at / 8 + 1) & 7] : port.read(byte / kBurstBytes + 1).part[0];
  return low == 0 ? word.part[at / 8] : word.part[at / 8] >> low | next << (64 - low);
}

// Groups in a row of MCUs, and in the picture.
inline std::uint32_t groups_across(const Job& job, int component) {
  const std::uint32_t blocks = std::uint32_t{job.mcu_columns} * (component == 0 ? job.h : 1U);
  return (blocks + kGroupBlocks - 1) / kGroupBlocks;
}
inline std::uint32_t packed_groups(const Job& job) {
  const std::uint32_t chroma = job.components == 3 ? 2 * groups_across(job, 1) : 0;
  return (job.v * groups_across(job, 0) + chroma) * job.mcu_rows;
}

// Where the groups' sizes are in the image, and the first group is.
inline std::uint32_t packed_sizes(const Job& job) {
  return kPackedHead + kPackedTable * job.packed_tables;
}
inline std::uint32_t packed_start(const Job& job) {
  const std::uint32_t end = packed_sizes(job) + 2 * packed_groups(job);
  return end < kLeastPackedStart ? kLeastPackedStart : end;
}

// kDone: `job` has the picture's frame and its tables. kDamaged: it is no head, or says that the image has other bytes
// or another size than the descriptor does. REQUIRES: the source lies in the buffer.
inline Reason read_packed_head(const ReadPort& encoded, Job& job) {
  const Descriptor& image = job.image;
  std::uint64_t word[kPackedHead / 8];
  for (std::uint32_t i = 0; i < kPackedHead / 8; ++i) word[i] = bytes_at(encoded, image.source + 8 * i);
  const auto byte = [&](unsigned at) { return static_cast<std::uint8_t>(word[at / 8] >> at % 8 * 8); };
  constexpr std::uint64_t kMagicAndVersion = 0x14B50524DULL;  // "MRPK", 1
  if (image.source_bytes < kPackedHead || (word[0] & 0xffffffffffULL) != kMagicAndVersion) return Reason::kDamaged;
  job.components = byte(5);
  job.h = byte(6);
  job.v = byte(7);
  const bool grey = job.components == 1;
  const int most = grey ? 1 : 2;
  if ((!grey && job.components != 3) || job.h < 1 || job.h > most || job.v < 1 || job.v > most) return Reason::kDamaged;
  if ((word[1] & 0xffff) != image.width || (word[1] >> 16 & 0xffff) != image.height) return Reason::kDamaged;
  if (job.h == 2 && image.width <= 4) return Reason::kDamaged;
  job.packed_tables = byte(15);
  if (job.packed_tables > job.components) return Reason::kDamaged;
  for (unsigned i = 0; i < job.components; ++i) {
    job.quant[i] = byte(12 + i);
    if (job.quant[i] >= job.packed_tables) return Reason::kDamaged;
  }
  put_mcus(job);
  job.by_planes = 1;
  const bool fits = word[2] == packed_groups(job) && word[3] == image.source_bytes &&  // a zero behind the groups
                    packed_start(job) <= image.source_bytes;
  return fits ? Reason::kDone : Reason::kDamaged;
}

}  // namespace hls
}  // namespace millrace
