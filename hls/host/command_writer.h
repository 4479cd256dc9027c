// The commands of one batch in memory that somebody else owns: its head, room for the descriptors, then tables, each
// from a new unit on. Thread-bound(its owner).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "hls/wire/words.h"

namespace millrace::hls {

class CommandWriter {
 public:
  CommandWriter() = default;
  // REQUIRES: `memory` has room for the head and `most_images` descriptors: before_tables() bytes.
  CommandWriter(std::span<std::byte> memory, std::uint32_t most_images)
      : memory_(memory.first(memory.size() / kUnit * kUnit)), end_(before_tables(most_images)) {}

  static constexpr std::size_t before_tables(std::uint32_t images) {
    return sizeof(Batch) + std::size_t{images} * sizeof(Descriptor);
  }

  void put_batch(const Batch& batch) { std::memcpy(memory_.data(), &batch, sizeof batch); }
  void put_descriptor(std::uint32_t index, const Descriptor& image) {
    std::memcpy(memory_.data() + before_tables(index), &image, sizeof image);
  }
  // The unit where `table` begins; nullopt: there is no room. What its last unit has beyond it is 0.
  std::optional<std::uint32_t> append(std::span<const std::byte> table) {
    const std::size_t bytes = (table.size() + kUnit - 1) / kUnit * kUnit;
    if (bytes > memory_.size() - end_) return std::nullopt;
    std::byte* const to = memory_.data() + end_;
    std::memcpy(to, table.data(), table.size());
    std::memset(to + table.size(), 0, bytes - table.size());
    const auto unit = static_cast<std::uint32_t>(end_ / kUnit);
    end_ += bytes;
    return unit;
  }

  std::size_t bytes() const { return end_; }
  // Takes back what was appended since bytes() was `end`.
  void shrink(std::size_t end) { end_ = end; }

 private:
  std::span<std::byte> memory_;
  std::size_t end_ = 0;
};

}  // namespace millrace::hls
