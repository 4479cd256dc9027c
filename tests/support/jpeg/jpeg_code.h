// Huffman codes as a JPEG file states them, made without a library. Thread-safe: plain functions.
#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <vector>

namespace millrace {

// A DHT table: how many codes of 1..16 bits there are, and their symbols, shorter codes first.
struct JpegCode {
  std::array<std::uint8_t, 16> counts{};
  std::vector<std::uint8_t> symbols;
};

// How often each symbol occurs.
using JpegFrequencies = std::array<std::uint32_t, 256>;

// The tables of T.81 K.3, which most cameras use.
const JpegCode& default_dc_code();
const JpegCode& default_ac_code();

// Symbols of one length, in their order.
JpegCode flat_code(int length, std::vector<std::uint8_t> symbols);

// The shortest code, at most 16 bits, without the code of all ones (T.81 K.2). At least one symbol.
JpegCode optimal_code(const JpegFrequencies& frequencies);

// Any lengths from 1 to 16 bits for the symbols that occur, and for a few that do not; much of the code's room may be
// empty.
JpegCode random_code(const JpegFrequencies& frequencies, int most_symbol, std::mt19937& random);

}  // namespace millrace
