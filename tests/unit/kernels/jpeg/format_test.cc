// What a JPEG file says before a pixel is decoded.
#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

#include "kernels/jpeg/restart_intervals.h"
#include "kernels/jpeg/unstuff.h"
#include "tests/support/pictures/test_images.h"

namespace millrace::kernels::jpeg {
namespace {

using Bytes8 = std::vector<std::uint8_t>;

Bytes8 make_file(int h = 2, int v = 2) {
  const auto jpeg = make_jpeg({.pixels = make_pixels(300, 200, 3, 9), .quality = 92, .h_samp = h, .v_samp = v});
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(jpeg.data());
  return {bytes, bytes + jpeg.size()};
}

std::size_t find(const Bytes8& file, int marker) {
  for (std::size_t i = 0; i + 1 < file.size(); ++i) {
    if (file[i] == 0xFF && file[i + 1] == marker) return i;
  }
  FAIL("no such marker");
  return 0;
}

// A file that is refused once `change` was made to it.
template <typename Change>
bool is_refused_after(Change change) {
  Bytes8 file = make_file();
  REQUIRE(read_header(file));
  change(file);
  return !read_header(file).has_value();
}

}  // namespace

TEST_CASE("a JPEG header says what the decoder needs", "[kernels]") {
  const Bytes8 file = make_file(2, 1);

  const auto header = read_header(file);

  REQUIRE(header);
  REQUIRE(header->size == Size{300, 200});
  REQUIRE(header->components == 3);
  REQUIRE(header->component[0].h == 2);
  REQUIRE(header->component[0].v == 1);
  REQUIRE(header->scan.data() + header->scan.size() == file.data() + file.size());
}

TEST_CASE("odd JPEG headers are refused", "[kernels]") {
  REQUIRE(is_refused_after([](Bytes8& file) { file[0] = 0; }));
  REQUIRE(is_refused_after([](Bytes8& file) { file.resize(find(file, 0xDA) + 5); }));
  REQUIRE(is_refused_after([](Bytes8& file) { file[find(file, 0xC0) + 4] = 12; }));
  REQUIRE(is_refused_after([](Bytes8& file) { file[find(file, 0xC0) + 1] = 0xC2; }));
  REQUIRE(is_refused_after([](Bytes8& file) { file[find(file, 0xC0) + 11] = 0x41; }));
  REQUIRE(is_refused_after([](Bytes8& file) { file[find(file, 0xC0) + 13] = 1; }));    // two components of one id
  REQUIRE(is_refused_after([](Bytes8& file) { file[find(file, 0xDB) + 4] = 0x17; }));  // no such table
  REQUIRE(is_refused_after([](Bytes8& file) { file[find(file, 0xDB) + 5] = 0; }));     // a factor of 0
  REQUIRE(is_refused_after([](Bytes8& file) { file[find(file, 0xC4) + 3] += 1; }));    // too long a segment
  REQUIRE(is_refused_after([](Bytes8& file) { file[find(file, 0xDA) + 11] = 1; }));    // spectral selection
  REQUIRE(is_refused_after([](Bytes8& file) { file[find(file, 0xE0) + 1] = 0x01; }));  // TEM before its turn
  REQUIRE(is_refused_after([](Bytes8& file) { file[find(file, 0xE0) + 9] = 2; }));     // no such version of JFIF
}

TEST_CASE("unstuffing gives the same bytes and marker with every instruction set", "[kernels]") {
  std::mt19937 random(1);
  for (int round = 0; round < 3000; ++round) {
    Bytes8 scan(random() % 300);
    const bool dense = round % 2 == 0;
    for (std::uint8_t& byte : scan)
      byte = dense && random() % 3 == 0 ? 0xFF : static_cast<std::uint8_t>(random() % 255);
    for (std::size_t i = 1; i < scan.size(); ++i) {
      if (scan[i - 1] == 0xFF && random() % 30 != 0) scan[i] = 0;
    }
    Bytes8 expected(scan.size() + kUnstuffSlack), out(expected.size());
    const Unstuffed plain = reference::unstuff(scan, expected.data());
    for (const Target target : available_targets()) {
      const Unstuffed unstuffed = unstuff(scan, out.data(), target);
      REQUIRE(unstuffed.size == plain.size);
      REQUIRE(unstuffed.marker == plain.marker);
      REQUIRE(find_marker(scan, target).code == plain.marker);
      REQUIRE(find_marker(scan, target).at == plain.consumed);
      REQUIRE(reference::find_marker(scan).at == plain.consumed);
      REQUIRE(std::equal(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(plain.size), expected.begin()));
    }
  }
}

TEST_CASE("restart markers come in turns, before each interval but the first", "[kernels]") {
  REQUIRE(restart_before(1) == 0xD0);
  REQUIRE(restart_before(8) == 0xD7);
  REQUIRE(restart_before(9) == 0xD0);
  for (int code = -1; code < 256; ++code) {
    REQUIRE(is_restart(code) == (code >= 0xD0 && code <= 0xD7));
    REQUIRE(ends_image(code) == (code == 0xD9));
  }
}

}  // namespace millrace::kernels::jpeg
