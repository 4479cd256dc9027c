// PNG filters undone: every target against the standard's definition.
#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <vector>

#include "kernels/cpu/png/unfilter.h"
#include "proto/base/sanitized.h"

namespace millrace::kernels::png {
namespace {

using Row = std::vector<std::uint8_t>;
constexpr std::size_t kPixelSizes[] = {1, 2, 3, 4, 6, 8};

// PNG 9.4.
int paeth(int a, int b, int c) {
  const int p = a + b - c, pa = std::abs(p - a), pb = std::abs(p - b), pc = std::abs(p - c);
  return pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
}

// What an encoder makes of a row (PNG 9.2).
Row filtered(Filter filter, std::size_t pixel, const Row& row, const Row& above) {
  Row result(row.size());
  for (std::size_t i = 0; i < row.size(); ++i) {
    const int a = i < pixel ? 0 : row[i - pixel], b = above[i], c = i < pixel ? 0 : above[i - pixel];
    const int guesses[] = {0, a, b, (a + b) / 2, paeth(a, b, c)};
    result[i] = static_cast<std::uint8_t>(row[i] - guesses[static_cast<std::size_t>(filter)]);
  }
  return result;
}

// With kRowSlack bytes behind it that are anything.
Row with_slack(Row row, std::mt19937& random) {
  for (std::size_t i = 0; i < kRowSlack; ++i) row.push_back(static_cast<std::uint8_t>(random()));
  return row;
}

// Random, with runs of bytes near each other and near the ends of their range, as pictures have them.
Row random_row(std::size_t size, std::mt19937& random) {
  Row row(size);
  const unsigned kind = random() % 4;
  for (std::uint8_t& byte : row) {
    const auto any = static_cast<unsigned>(random());
    byte = static_cast<std::uint8_t>(kind == 0 ? any : kind == 1 ? any % 3 : kind == 2 ? 255 - any % 3 : 100 + any % 9);
  }
  return row;
}

Row undone(Target target, Filter filter, std::size_t pixel, const Row& in, const Row& above, std::mt19937& random) {
  constexpr std::uint8_t kUntouched = 0xA5;
  Row out(in.size() + kRowSlack + 8, kUntouched);
  const Row input = with_slack(in, random), upper = with_slack(above, random);
  unfilter_row(target, filter, pixel)(input.data(), upper.data(), in.size(), out.data());
  REQUIRE(std::all_of(out.end() - 8, out.end(), [](std::uint8_t byte) { return byte == kUntouched; }));
  out.resize(in.size());
  return out;
}

}  // namespace

TEST_CASE("every filter is undone, for every size of pixel, length of row and target", "[kernels][png]") {
  std::mt19937 random(1);
  for (const Target target : available_targets()) {
    for (std::uint8_t filter = 0; filter < kFilters; ++filter) {
      for (const std::size_t pixel : kPixelSizes) {
        for (std::size_t pixels = 1; pixels <= 150; pixels += pixels < 70 ? 1 : 29) {
          const Row row = random_row(pixels * pixel, random), above = random_row(pixels * pixel, random);
          const Row in = filtered(Filter{filter}, pixel, row, above);

          CAPTURE(name_of(target), int{filter}, pixel, pixels);
          REQUIRE(undone(target, Filter{filter}, pixel, in, above, random) == row);
        }
      }
    }
  }
}

TEST_CASE("rows longer than a block of Paeth's steps are undone, too", "[kernels][png]") {
  std::mt19937 random(2);
  for (const Target target : available_targets()) {
    for (const std::size_t pixel : kPixelSizes) {
      for (const std::size_t bytes : {360U, 384U, 408U, 768U, 792U, 5000U}) {
        const std::size_t size = bytes / pixel * pixel;
        const Row row = random_row(size, random), above = random_row(size, random);

        CAPTURE(name_of(target), pixel, size);
        REQUIRE(undone(target, Filter::kPaeth, pixel, filtered(Filter::kPaeth, pixel, row, above), above, random) ==
                row);
      }
    }
  }
}

TEST_CASE("Paeth's predictor is the standard's for all neighbours", "[kernels][png]") {
  constexpr std::size_t kPixel = 8;  // eight neighbours to the left at a time
  for (const Target target : available_targets()) {
    const UnfilterRow undo = unfilter_row(target, Filter::kPaeth, kPixel);
    int wrong = 0;
    for (int b = 0; b < 256; b += kSanitized ? 5 : 1) {
      for (int c = 0; c < 256; c += kSanitized ? 3 : 1) {
        for (int a = 0; a < 256; a += static_cast<int>(kPixel)) {
          std::uint8_t in[2 * kPixel + kRowSlack] = {}, above[2 * kPixel + kRowSlack] = {}, out[2 * kPixel + kRowSlack];
          for (std::size_t i = 0; i < kPixel; ++i) {
            in[i] = static_cast<std::uint8_t>(a + static_cast<int>(i) - c);
            above[i] = static_cast<std::uint8_t>(c);
            above[kPixel + i] = static_cast<std::uint8_t>(b);
          }
          undo(in, above, 2 * kPixel, out);
          for (std::size_t i = 0; i < kPixel; ++i)
            wrong += out[i] != a + static_cast<int>(i) || out[kPixel + i] != paeth(a + static_cast<int>(i), b, c);
        }
      }
    }
    CAPTURE(name_of(target));
    REQUIRE(wrong == 0);
  }
}

TEST_CASE("the fourth byte of every pixel is dropped", "[kernels][png]") {
  std::mt19937 random(3);
  for (const Target target : available_targets()) {
    for (std::size_t count = 1; count < 70; ++count) {
      const Row row = random_row(4 * count, random), in = with_slack(row, random);
      Row out(3 * count + kRowSlack, 0), expected;
      for (std::size_t i = 0; i < 4 * count; ++i) {
        if (i % 4 != 3) expected.push_back(row[i]);
      }

      drop_fourth(target)(in.data(), count, out.data());

      out.resize(3 * count);
      CAPTURE(name_of(target), count);
      REQUIRE(out == expected);
    }
  }
}

}  // namespace millrace::kernels::png
