// A walk over the boxes of a HEIF file, and the properties of an item: what heif_boxes.cc reads with. Views of the
// bytes.
#pragma once

#include <algorithm>
#include <array>
#include <bitset>
#include <cstdint>
#include <optional>
#include <string_view>

#include "daemon/heif/heif_boxes.h"
#include "proto/base/byte_reader.h"

namespace millrace {

struct FileBox {
  std::uint32_t type = 0;
  ByteReader data{ByteView{}};
  bool is_whole = true;
  bool is_open = false;  // its length is not said: it goes to the end
};

// The boxes that follow each other in `data`. ISO/IEC 14496-12, 4.2.
class Boxes {
 public:
  explicit Boxes(ByteReader data, std::size_t at = 0) : data_(data), at_(at) {}

  std::optional<FileBox> next() {
    const auto size = data_.big32(at_), type = data_.big32(at_ + 4);
    if (!size || !type) return std::nullopt;
    std::uint64_t bytes = *size, header = 8;
    if (bytes == 1) {
      const auto upper = data_.big32(at_ + 8), lower = data_.big32(at_ + 12);
      if (!upper || !lower) return std::nullopt;
      bytes = std::uint64_t{*upper} << 32U | *lower;
      header = 16;
    } else if (bytes == 0) {
      bytes = data_.size() - at_;
    }
    if (bytes < header) return std::nullopt;
    const std::size_t there = data_.size() - at_;
    const auto whole = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, there));
    FileBox box{*type, ByteReader(data_.part(at_ + header, whole - std::min<std::size_t>(header, whole))),
                bytes <= there, *size == 0};
    at_ = bytes > there ? data_.size() : at_ + static_cast<std::size_t>(bytes);
    return box;
  }

 private:
  ByteReader data_;
  std::size_t at_;
};

inline std::optional<ByteReader> find(ByteReader data, std::size_t at, std::string_view name) {
  Boxes boxes(data, at);
  while (const std::optional<FileBox> box = boxes.next()) {
    if (box->type == fourcc(name)) return box->data;
  }
  return std::nullopt;
}

// Version and flags of a "full box" stand before what it holds.
inline constexpr std::size_t kFull = 4;

inline std::uint32_t version_of(const ByteReader& box) {
  return box.u8(0).value_or(0);
}

// A number of as many bytes as some field of the file says, 0 to 8.
inline std::optional<std::uint64_t> number(const ByteReader& data, std::size_t at, unsigned bytes) {
  std::uint64_t value = 0;
  for (unsigned i = 0; i < bytes; ++i) {
    const auto byte = data.u8(at + i);
    if (!byte) return std::nullopt;
    value = value << 8U | *byte;
  }
  return value;
}

// The properties of an item, in its order. 23008-12, 9.3.
class Properties {
 public:
  Properties(ByteReader meta, std::uint32_t item) {
    const auto iprp = find(meta, kFull, "iprp");
    const auto ipco = iprp ? find(*iprp, 0, "ipco") : std::nullopt;
    if (!ipco) return;
    Boxes boxes(*iprp);
    while (const std::optional<FileBox> box = boxes.next()) {
      if (box->type == fourcc("ipma") && read_numbers(box->data, item)) break;
    }
    Boxes all(*ipco);
    for (std::uint32_t number = 1; const std::optional<FileBox> box = all.next(); ++number) {
      if (number >= wanted_.size()) break;
      if (!wanted_[number]) continue;
      for (std::size_t i = 0; i < count_; ++i) {
        if (numbers_[i] == number) boxes_[i] = *box;
      }
    }
  }

  // The first.
  std::optional<ByteReader> of(std::string_view name) const {
    for (std::size_t i = 0; i < count_; ++i) {
      if (boxes_[i].type == fourcc(name)) return boxes_[i].data;
    }
    return std::nullopt;
  }

  std::size_t count() const { return count_; }
  const FileBox& operator[](std::size_t i) const { return boxes_[i]; }

 private:
  bool read_numbers(const ByteReader& ipma, std::uint32_t item) {
    const unsigned id_bytes = version_of(ipma) < 1 ? 2 : 4;
    const unsigned number_bytes = (ipma.u8(3).value_or(0) & 1U) != 0 ? 2 : 1;
    const std::uint32_t entries = ipma.big32(kFull).value_or(0);
    std::size_t at = kFull + 4;
    for (std::uint32_t i = 0; i < entries; ++i) {
      const auto id = number(ipma, at, id_bytes);
      const auto count = ipma.u8(at + id_bytes);
      if (!id || !count) return false;
      at += id_bytes + 1;
      if (*id == item) {
        for (unsigned j = 0; j < *count; ++j) {
          const auto one = number(ipma, at + std::size_t{j} * number_bytes, number_bytes);
          if (!one) break;
          numbers_[count_] = static_cast<std::uint32_t>(*one) & (number_bytes == 2 ? 0x7FFFU : 0x7FU);
          wanted_.set(numbers_[count_++]);
        }
        return true;
      }
      at += std::size_t{*count} * number_bytes;
    }
    return false;
  }

  std::array<std::uint32_t, 256> numbers_{};
  std::array<FileBox, 256> boxes_{};
  std::size_t count_ = 0;
  std::bitset<0x8000> wanted_;
};

}  // namespace millrace
