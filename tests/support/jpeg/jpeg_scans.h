// JPEG files with the same coefficients in other scans, and what else can stand between scans. libjpeg-turbo writes them.
// Thread-safe: plain functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <vector>

namespace millrace {

// T.81 B.2.3: components by number, coefficients first..last in zig-zag order, bits high (0: the first scan of them) and
// low.
struct JpegScan {
  std::vector<int> components;
  int first = 0, last = 63, high = 0, low = 0;
};

// Of three components: as libjpeg writes progressive files.
std::vector<JpegScan> simple_progression();
// A scan a component, sequential.
std::vector<JpegScan> sequential_scans(int components);
// Any complete script: sequential or progressive, bands and bits cut at random.
std::vector<JpegScan> draw_scans(int components, std::mt19937& random);

// nullopt: libjpeg-turbo does not take the file, or does not write it so (interleaved scans of too many blocks).
std::optional<std::vector<std::byte>> with_scans(std::span<const std::byte> file, const std::vector<JpegScan>& scans);

// Where the markers of the scans stand.
std::vector<std::size_t> scans_of(std::span<const std::byte> file);

// With a definition of the quantisation table before the marker at `at`: all of it `value`.
std::vector<std::byte> with_quant_table(std::span<const std::byte> file, std::size_t at, int table, int value);

// The same components as RGB: Adobe's marker in the place of JFIF's.
std::vector<std::byte> as_rgb(std::span<const std::byte> file);

}  // namespace millrace
