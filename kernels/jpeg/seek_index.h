// A seek index: where in a JPEG file's data MCUs begin, and the DC predictors there, every few MCUs. With it decoding
// starts at any of these places. Positions count the file's bytes as they are, stuffing included, so that only the
// parts that a crop needs have to be unstuffed.
//
// An index covers the image's first MCUs, perhaps not all, and can grow. It is bytes, whose format README.md gives as
// a grammar; who decodes an image makes it (SeekRecorder of kernels/cpu).
//
// It carries a digest of the scan that it was made from, and of its Huffman tables, since a file can change without any
// sign of it (a store through a shared mapping leaves its times alone), and what an index skips decides the DC levels
// of what it does not.
//
// The bytes are hostile: they may come from a damaged disk, or belong to another file. read() takes only what has the
// right checksum, owner, shape and scan; places may still be wrong, and the decoder that uses them must check where
// decoding ends.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/jpeg/header.h"

namespace millrace::kernels::jpeg {

using DcPredictors = std::array<int, 3>;  // a component each
using IndexBytes = std::span<const std::uint8_t>;

// Before an MCU.
struct SeekPlace {
  std::int64_t mcu = 0;  // counted from the image's first
  std::int64_t bit = 0;  // from the beginning of the scan's data
  DcPredictors predictors{};
};

// The MCUs of an image.
struct SeekGrid {
  int columns = 0, rows = 0;
  int blocks_in_mcu = 0;
  int components = 0;

  std::int64_t mcus() const { return std::int64_t{columns} * rows; }
  friend bool operator==(const SeekGrid&, const SeekGrid&) = default;
};

SeekGrid seek_grid(const Header& header);

// An index that was read. Thread-bound(its owner).
class SeekIndex {
 public:
  // False: damaged, of another version, of another owner, or not for this image's scan, of which each byte is read.
  // `owner`: any number that says whose index it is.
  bool read(IndexBytes bytes_untrusted, const Header& header, std::uint64_t owner);

  const SeekGrid& grid() const { return grid_; }
  // In rising order, from the image's first MCU, at bit 0, to where the index ends: MCUs before that one are covered.
  // At least two.
  std::span<const SeekPlace> places() const { return places_; }
  std::int64_t data_bytes() const { return data_bytes_; }  // from the scan's beginning to the marker that ends it
  int widest() const { return widest_; }                   // most MCUs between two places

 private:
  bool read_places(IndexBytes entries);

  SeekGrid grid_;
  std::int64_t data_bytes_ = 0;
  int widest_ = 0;
  std::vector<SeekPlace> places_;
};

// The layout, for who writes it. All numbers are little-endian.
namespace seek_format {
inline constexpr std::uint8_t kVersion = 2;
inline constexpr std::size_t kHeadBytes = 40;
inline constexpr std::size_t kEntryBytes = 8;
inline constexpr std::size_t kMarkerBytes = 2;
inline constexpr int kMcuBits = 8;         // since the place before
inline constexpr int kPositionBits = 20;   // the same
inline constexpr int kPredictorBits = 12;  // each, signed

std::uint64_t checksum(IndexBytes bytes, std::uint64_t owner);  // of what follows it
// Of what makes blocks of bits: each component's Huffman tables, the scan's data and the marker that ends it.
std::uint64_t digest(const Header& header, std::size_t data_bytes, std::uint64_t owner);
}  // namespace seek_format

}  // namespace millrace::kernels::jpeg
