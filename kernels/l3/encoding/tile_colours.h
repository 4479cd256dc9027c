// The colours of a tile, for encoders: up to 256, counted and ordered. Compiled once for each instruction set, as
// encode_tile_loop.h, which includes it. Internal to kernels/l3.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/l3/samples.h"
#include "kernels/l3/tile.h"

namespace millrace::kernels::l3 {
namespace {

template <class Sample>
Sample sample_of(const SampleView& pixels, int x, int y, int c) {
  Sample sample;
  std::memcpy(&sample, pixels.row(y) + (x * pixels.channels + c) * static_cast<int>(sizeof sample), sizeof sample);
  return sample;
}

// Colours of a tile, in the order in which a tile of few colours has them.
template <class Sample>
class Colours {
 public:
  // False: there are more than 256.
  bool count(const SampleView& pixels, std::array<std::uint8_t, kTilePixels>& numbers) {
    slots_.fill(0);
    std::array<std::uint16_t, kTilePixels> found;
    for (int y = 0; y < pixels.size.height; ++y) {
      for (int x = 0; x < pixels.size.width; ++x) {
        const int place = place_of(key_at(pixels, x, y));
        if (place < 0) return false;
        found[static_cast<std::size_t>(y * kTileSide + x)] = static_cast<std::uint16_t>(place);
        ++entries_[static_cast<std::size_t>(place)].count;
      }
    }
    std::array<std::uint16_t, 256> order;
    for (std::size_t i = 0; i < count_; ++i) order[i] = static_cast<std::uint16_t>(i);
    std::sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count_),
              [&](std::uint16_t a, std::uint16_t b) {
                return entries_[a].count != entries_[b].count ? entries_[a].count > entries_[b].count
                                                              : entries_[a].key < entries_[b].key;
              });
    std::array<std::uint8_t, 256> number_of;
    for (std::size_t i = 0; i < count_; ++i) {
      number_of[order[i]] = static_cast<std::uint8_t>(i);
      keys_[i] = entries_[order[i]].key;
    }
    numbers.fill(0);
    for (int y = 0; y < pixels.size.height; ++y) {
      for (int x = 0; x < pixels.size.width; ++x) {
        const auto at = static_cast<std::size_t>(y * kTileSide + x);
        numbers[at] = number_of[found[at]];
      }
    }
    return true;
  }

  std::size_t size() const { return count_; }

  void append_to(int channels, std::vector<std::uint8_t>& out) const {
    for (std::size_t i = 0; i < count_; ++i) {
      for (int c = 0; c < channels; ++c) {
        const auto sample = static_cast<Sample>(keys_[i] >> (16 * (kMostChannels - 1 - c)));
        for (std::size_t b = 0; b < sizeof sample; ++b) out.push_back(static_cast<std::uint8_t>(sample >> (8 * b)));
      }
    }
  }

 private:
  struct Entry {
    std::uint64_t key;
    std::uint32_t count;
  };
  static constexpr std::size_t kSlots = 1024;

  // The first sample in the highest bits, so that keys are ordered as samples are.
  static std::uint64_t key_at(const SampleView& pixels, int x, int y) {
    std::uint64_t key = 0;
    for (int c = 0; c < pixels.channels; ++c)
      key |= std::uint64_t{sample_of<Sample>(pixels, x, y, c)} << (16 * (kMostChannels - 1 - c));
    return key;
  }

  int place_of(std::uint64_t key) {
    for (std::size_t slot = key * 0x9E37'79B9'7F4A'7C15U >> 54U;; slot = (slot + 1) % kSlots) {
      if (slots_[slot] == 0) {
        if (count_ == 256) return -1;
        entries_[count_] = {key, 0};
        slots_[slot] = static_cast<std::uint16_t>(++count_);
      }
      if (entries_[slots_[slot] - 1U].key == key) return slots_[slot] - 1;
    }
  }

  std::array<std::uint16_t, kSlots> slots_;  // an entry's number and one; 0: none
  std::array<Entry, 256> entries_;
  std::array<std::uint64_t, 256> keys_;
  std::size_t count_ = 0;
};

}  // namespace
}  // namespace millrace::kernels::l3
