// A packed image: the quantised coefficients of a baseline JPEG, without loss, in a form that vectors unpack. Bytes,
// whose format README.md gives as a grammar; Encoder (encoder.h) makes them, an Unpacker (unpack.h) turns their groups
// into blocks again.
//
// The bytes are hostile: they may come from a damaged disk, or from somebody who made them up, with whatever checksum.
// Whatever read() takes, unpacking any of its groups reads no byte outside the image's and kPadding behind them, and
// writes no byte but the blocks asked for (README.md, "Bounds"). What they say may still be anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/jpeg/header.h"

namespace millrace::kernels::packed {

inline constexpr int kGroupBlocks = 32;  // in a group, at most

// Bytes behind a packed image that must be readable; what they are changes nothing.
inline constexpr std::size_t kPadding = 4352;

// The blocks of an image: those that only fill up an MCU are among them.
struct Grid {
  int components = 0;         // 1 or 3
  int h = 1, v = 1;           // the first component's blocks in an MCU, across and down; the others have one
  int columns = 0, rows = 0;  // MCUs

  int blocks_in_mcu() const { return components == 1 ? 1 : h * v + 2; }
  std::int64_t blocks_in_mcu_row() const { return std::int64_t{columns} * blocks_in_mcu(); }
  std::int64_t blocks() const { return blocks_in_mcu_row() * rows; }

  // Of a component: blocks side by side, and rows of them in an MCU row.
  int across(int component) const { return columns * (component == 0 ? h : 1); }
  int down(int component) const { return component == 0 ? v : 1; }

  int groups_across(int component) const { return (across(component) + kGroupBlocks - 1) / kGroupBlocks; }
  int groups_in_mcu_row() const;
  std::size_t groups() const { return static_cast<std::size_t>(groups_in_mcu_row()) * static_cast<std::size_t>(rows); }
  // The group in which the block `column` of a component's `row` in MCU row `line` is: its block column % kGroupBlocks.
  std::size_t group_of(int line, int component, int row, int column) const;

  friend bool operator==(const Grid&, const Grid&) = default;
};
Grid grid_of(const jpeg::Header& header);

// Blocks side by side in one row of a component. Its bytes are borrowed.
struct Group {
  const std::uint8_t* begin = nullptr;
  const std::uint8_t* end = nullptr;
  int blocks = 0;  // 1..kGroupBlocks
};

enum class Check : std::uint8_t {
  kChecksum,
  kShape,  // the checksum was compared before, and the bytes have been in our own memory since
};

// Borrows the bytes. Allocates nothing once it has seen the sizes that occur. Thread-bound(its owner).
class PackedImage {
 public:
  // False: damaged, of another version, or of a kind that our decoders do not take. Costs 2 ns a group, and the
  // checksum where it is wanted. Unpacking REQUIRES kPadding readable bytes behind `bytes_untrusted`.
  bool read(std::span<const std::uint8_t> bytes_untrusted, Check check);

  // Size, components with their samplings, and quantisation tables; no Huffman tables, no scan.
  const jpeg::Header& header() const { return header_; }
  const Grid& grid() const { return grid_; }
  // REQUIRES: index < grid().groups().
  Group group(std::size_t index) const;

 private:
  bool read_head(std::span<const std::uint8_t> bytes);
  bool read_tables(std::span<const std::uint8_t> bytes, std::size_t tables);
  bool read_sizes(std::span<const std::uint8_t> bytes, std::size_t tables);

  jpeg::Header header_;
  Grid grid_;
  const std::uint8_t* bytes_ = nullptr;
  std::vector<std::uint64_t> offsets_;  // where groups begin, and where the last one ends
  std::vector<std::uint8_t> blocks_;    // of the groups of an MCU row
};

}  // namespace millrace::kernels::packed
