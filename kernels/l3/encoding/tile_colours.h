// The colours of a tile, for encoders: up to 256, counted and ordered. Compiled once for each instruction set, as
// encode_tile_loop.h, which includes it. Internal to kernels/l3.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <vector>

#include "kernels/l3/samples.h"
#include "kernels/l3/tile.h"

namespace millrace::kernels::l3 {
namespace {

// Colours of a tile, in the order in which a tile of few colours has them.
template <class Sample>
class Colours {
 public:
  // False: there are more than 256, or a tile of few colours would have `bytes` or more.
  bool count(const SampleView& pixels, std::size_t bytes, std::array<std::uint8_t, kTilePixels>& numbers) {
    slots_.fill(0);
    std::array<std::uint16_t, kTilePixels> found;
    const bool are_few = pixels.channels == 1   ? find<1>(pixels, found)
                         : pixels.channels == 2 ? find<2>(pixels, found)
                         : pixels.channels == 3 ? find<3>(pixels, found)
                                                : find<4>(pixels, found);
    if (!are_few || fewest_bytes(pixels) >= bytes) return false;
    for (std::size_t i = 0; i < count_; ++i) entries_[i].place = static_cast<std::uint32_t>(i);
    std::sort(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(count_),
              [](const Entry& a, const Entry& b) { return a.count != b.count ? a.count > b.count : a.key < b.key; });
    std::array<std::uint8_t, 256> number_of;
    for (std::size_t i = 0; i < count_; ++i) number_of[entries_[i].place] = static_cast<std::uint8_t>(i);
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
        const auto sample = static_cast<Sample>(entries_[i].key >> (16 * (kMostChannels - 1 - c)));
        for (std::size_t b = 0; b < sizeof sample; ++b) out.push_back(static_cast<std::uint8_t>(sample >> (8 * b)));
      }
    }
  }

 private:
  struct Entry {
    std::uint64_t key;
    std::uint32_t count;
    std::uint32_t place;  // before they were sorted
  };
  static constexpr std::size_t kSlots = 4096;

  // The first sample in the highest bits, so that keys are ordered as samples are.
  template <int kChannels>
  static std::uint64_t key_of(const std::uint8_t* pixel) {
    Sample samples[kChannels];
    std::memcpy(samples, pixel, sizeof samples);
    std::uint64_t key = 0;
    for (int c = 0; c < kChannels; ++c) key |= std::uint64_t{samples[c]} << (16 * (kMostChannels - 1 - c));
    return key;
  }

  // The entry of each pixel. False: there are more than 256.
  template <int kChannels>
  bool find(const SampleView& pixels, std::array<std::uint16_t, kTilePixels>& found) {
    for (int y = 0; y < pixels.size.height; ++y) {
      const std::uint8_t* pixel = pixels.row(y);
      for (int x = 0; x < pixels.size.width; ++x, pixel += sizeof(Sample) * kChannels) {
        const int place = place_of(key_of<kChannels>(pixel));
        if (place < 0) return false;
        found[static_cast<std::size_t>(y * kTileSide + x)] = static_cast<std::uint16_t>(place);
        ++entries_[static_cast<std::size_t>(place)].count;
      }
    }
    return true;
  }

  // What a tile of these colours has at least: its colours, and of each number the bits that it has.
  std::size_t fewest_bytes(const SampleView& pixels) const {
    struct {
      std::size_t colours = 0, pixels = 0;
    } by_length[12];  // of a colour's count, which is at most kTilePixels
    for (std::size_t i = 0; i < count_; ++i) {
      auto& those = by_length[std::bit_width(entries_[i].count)];
      ++those.colours;
      those.pixels += entries_[i].count;
    }
    // No set of so many colours has more pixels.
    const auto most_pixels = [&](std::size_t colours) {
      std::size_t sum = 0;
      for (std::size_t length = std::size(by_length) - 1; length > 0 && colours > 0; --length) {
        const auto& those = by_length[length];
        const std::size_t taken = std::min(colours, those.colours);
        sum += std::min(those.pixels, taken * ((std::size_t{1} << length) - 1));
        colours -= taken;
      }
      return sum;
    };
    const auto all = static_cast<std::size_t>(pixels.size.width * pixels.size.height);
    std::size_t bits = 0;
    for (std::size_t shorter = 1; shorter < count_; shorter *= 2) bits += all - most_pixels(shorter);
    return 2 + count_ * static_cast<std::size_t>(pixels.channels) * sizeof(Sample) + bits / 8;
  }

  int place_of(std::uint64_t key) {
    for (std::size_t slot = key * 0x9E37'79B9'7F4A'7C15U >> 52U;; slot = (slot + 1) % kSlots) {
      if (slots_[slot] == 0) {
        if (count_ == 256) return -1;
        entries_[count_] = {key, 0, 0};
        slots_[slot] = static_cast<std::uint16_t>(++count_);
      }
      if (entries_[slots_[slot] - 1U].key == key) return slots_[slot] - 1;
    }
  }

  std::array<std::uint16_t, kSlots> slots_;  // an entry's number and one; 0: none
  std::array<Entry, 256> entries_;
  std::size_t count_ = 0;
};

}  // namespace
}  // namespace millrace::kernels::l3
