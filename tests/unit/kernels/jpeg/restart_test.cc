// Files with restart intervals: libjpeg-turbo's pixels in any box, by the markers, and its outcome where they are odd.
#include <algorithm>

#include "daemon/backend/cpu/decoders/jpeg/jpeg_choice.h"
#include "daemon/backend/cpu/decoders/jpeg/jpeg_decoder.h"
#include "tests/support/jpeg/random_jpeg.h"
#include "tests/support/jpeg/restart_damage.h"
#include "tests/support/pictures/test_images.h"
#include "tests/support/rounds.h"
#include "tests/unit/kernels/jpeg/jpeg_rig.h"

namespace millrace {
namespace {

using kernels::jpeg::Outcome;
using kernels::jpeg::Seeking;
using kernels::jpeg::SeekUse;

constexpr kernels::Size kRestartSize{410, 290};

struct Sampling {
  int channels, h, v;
};
constexpr Sampling kSamplings[] = {{1, 1, 1}, {3, 1, 1}, {3, 2, 1}, {3, 1, 2}, {3, 2, 2}};

File make_restart_file(const Sampling& sampling, int interval, int quality = 85) {
  return make_jpeg(
      {.pixels = make_pixels(kRestartSize.width, kRestartSize.height, static_cast<std::uint32_t>(sampling.channels), 3),
       .quality = quality,
       .h_samp = sampling.h,
       .v_samp = sampling.v,
       .restart_interval = interval});
}

kernels::Size restart_size_of(const JpegStream& stream) {
  return {stream.width, stream.height};
}

JpegStream draw_restarting(std::mt19937& random, int interval) {
  return draw_jpeg(
      {.width = 20 + below(random, 100), .height = 16 + below(random, 80), .h = 1, .restart_interval = interval},
      random);
}

// Whether markers are other than they should be; else only the data between them is.
bool changes_markers(RestartDamage kind) {
  return kind != RestartDamage::kMore && kind != RestartDamage::kFewer && kind != RestartDamage::kSwapped;
}

// A whole interval, its marker with it, is other data of as many bytes.
void spoil(File& file, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) file[i] = std::byte(static_cast<unsigned>(i * 37 % 255));
}

}  // namespace

TEST_CASE("JPEG files with restart intervals of any length are decoded here in any box", "[backend][restart]") {
  std::mt19937 random(71);
  for (const Sampling& s : kSamplings) {
    const int row = (kRestartSize.width + 8 * s.h - 1) / (8 * s.h),
              rows = (kRestartSize.height + 8 * s.v - 1) / (8 * s.v);
    for (const int interval : {1, 2, 7, 30, row - 1, row, row + 1, 5 * row / 2, 11 * row, row * rows - 1, 65535}) {
      const File file = make_restart_file(s, interval);
      for (int box = 0; box < rounds(8); ++box) {
        CAPTURE(s.channels, s.h, s.v, interval, box);
        const int taken =
            check_all(file, kRestartSize, box == 0 ? whole(kRestartSize) : random_box(random, kRestartSize));
        REQUIRE(taken == static_cast<int>(decoders().size()));
      }
    }
  }
}

TEST_CASE("every kind of damage to restart markers has libjpeg-turbo's outcome", "[backend][restart]") {
  std::mt19937 random(72);
  for (int kind = 0; kind < kRestartDamages; ++kind) {
    int whole_taken = 0, taken = 0;
    for (int i = 0; i < rounds(60); ++i) {
      const JpegStream stream = draw_restarting(random, 1 + below(random, i % 2 == 0 ? 4 : 40));
      const JpegFile written = write_jpeg(stream);
      if (restarts_of(written).empty()) continue;
      const File file = damage_restart(written, static_cast<RestartDamage>(kind), random);
      const kernels::Size size = restart_size_of(stream);
      CAPTURE(kind, i, stream.restart_interval);
      if (file == written.bytes) continue;
      whole_taken += check_all(file, size, whole(size)) > 0;
      for (int box = 0; box < 4; ++box) taken += check_all(file, size, random_box(random, size)) > 0;
    }
    CAPTURE(kind);
    REQUIRE((kind == static_cast<int>(RestartDamage::kSwapped) || whole_taken < rounds(60) / 6));
    REQUIRE((taken > 0) != changes_markers(static_cast<RestartDamage>(kind)));
  }
}

TEST_CASE("bytes or bits left over before a restart marker are libjpeg-turbo's affair", "[backend][restart]") {
  std::mt19937 random(73);
  for (const int interval : {1, 5, 500}) {  // the last one is decoded by itself
    for (int i = 0; i < rounds(10); ++i) {
      const JpegStream stream = draw_jpeg(
          {.width = 300, .height = 250, .h = 1, .v = 1, .components = 3, .density = 50, .restart_interval = interval},
          random);
      const JpegFile file = write_jpeg(stream);
      const auto restarts = restarts_of(file);
      const auto at = static_cast<std::ptrdiff_t>(restarts[random() % restarts.size()]);
      File more = file.bytes;
      more.insert(more.begin() + at, std::byte(random() % 255));
      CAPTURE(interval, i);

      REQUIRE(check_all(file.bytes, restart_size_of(stream), whole(restart_size_of(stream))) ==
              static_cast<int>(decoders().size()));
      REQUIRE(check_all(more, restart_size_of(stream), whole(restart_size_of(stream))) == 0);
    }
  }
}

TEST_CASE("damage in intervals that a box does not meet changes nothing", "[backend][restart]") {
  std::mt19937 random(74);
  for (int i = 0; i < rounds(40); ++i) {
    const JpegStream stream = draw_jpeg({.width = 96, .height = 96, .components = 3, .restart_interval = 1}, random);
    const JpegFile written = write_jpeg(stream);
    const auto restarts = restarts_of(written);
    File file = written.bytes;
    const std::size_t spoilt = 1 + random() % (restarts.size() / 3);
    spoil(file, restarts[spoilt - 1] + 2, restarts[spoilt]);
    CAPTURE(i, spoilt);

    const int taken = check_all(file, restart_size_of(stream), {10, 60, 60, 30});

    REQUIRE(taken == static_cast<int>(decoders().size()));
  }
}

TEST_CASE("a restart marker that is missing or wrong leaves the file to libjpeg-turbo, wherever the box lies",
          "[backend][restart]") {
  std::mt19937 random(76);
  constexpr int kColumns = 12;
  const kernels::Box in_first_mcu{1, 1, 5, 6};
  for (int i = 0; i < rounds(20); ++i) {
    const JpegStream stream = draw_jpeg(
        {.width = 8 * kColumns, .height = 96, .h = 1, .v = 1, .components = 3, .restart_interval = 1}, random);
    const JpegFile written = write_jpeg(stream);
    const auto cut_off_behind = [&](std::size_t marker) {
      const auto begin = written.bytes.begin();
      File file(begin, begin + static_cast<std::ptrdiff_t>(restarts_of(written)[marker]));
      for (const int byte : {0xFF, 0x92, 0x00, 0xFF, 0xD0 + static_cast<int>(marker + 1) % 8})
        file.push_back(static_cast<std::byte>(byte));
      return file;
    };
    CAPTURE(i);

    File renumbered = written.bytes;
    renumbered[restarts_of(written).back() + 1] ^= std::byte{1};

    REQUIRE(check_all(cut_off_behind(2), restart_size_of(stream), in_first_mcu) == 0);
    REQUIRE(check_all(cut_off_behind(3 * kColumns), restart_size_of(stream), in_first_mcu) == 0);
    REQUIRE(check_all(renumbered, restart_size_of(stream), in_first_mcu) == 0);
  }
}

TEST_CASE("a JPEG with restarts that has no end is truncated in any box", "[backend][restart]") {
  std::mt19937 random(75);
  for (const int interval : {1, 9, 2000}) {
    File file = make_restart_file({3, 1, 1}, interval);
    REQUIRE(check_all(file, kRestartSize, {5, 5, 30, 30}) > 0);
    file.resize(file.size() - 2);  // EOI

    REQUIRE(check_all(file, kRestartSize, {5, 5, 30, 30}) == 0);
    file.insert(file.end(), {std::byte{0xFF}, std::byte{0xD3}});
    REQUIRE(check_all(file, kRestartSize, {5, 5, 30, 30}) == 0);
  }
}

// libjpeg reads restarts behind the box then, and one of them ends its reading.
TEST_CASE("restarts in a grey JPEG with a vertical factor are libjpeg-turbo's affair", "[backend][restart]") {
  std::mt19937 random(76);
  JpegStream stream = draw_jpeg({.width = 64, .height = 64, .components = 1, .restart_interval = 3}, random);
  stream.components[0].h = 1;
  for (const int v : {1, 2, 4}) {
    stream.components[0].v = v;
    const JpegFile written = write_jpeg(stream);
    File file = written.bytes;
    file[restarts_of(written)[4] + 1] = std::byte{0x05};
    file.resize(written.end);
    CAPTURE(v);
    REQUIRE((check_all(written.bytes, {64, 64}, {0, 0, 20, 8}) > 0) == (v == 1));
    REQUIRE(check_all(file, {64, 64}, {0, 0, 20, 8}) == 0);
  }
}

TEST_CASE("restart markers serve as the seek index, and none is made beside them", "[backend][restart]") {
  const File file = make_restart_file({3, 2, 2}, 13), other = make_restart_file({3, 2, 2}, 0);
  const auto header = kernels::jpeg::read_header(file_bytes(file)),
             plain = kernels::jpeg::read_header(file_bytes(other));
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(kRestartSize.width) * kRestartSize.height * 3);
  const kernels::MutableU8View out{pixels.data(), kRestartSize.width, kRestartSize.height, 3,
                                   std::ptrdiff_t{kRestartSize.width} * 3};
  for (const auto& decoder : decoders()) {
    const auto decode = [&](const kernels::jpeg::Header& of, Seeking& seeking) {
      return decoder->decode(of, whole(kRestartSize), out, Clock::time_point::max(), &seeking);
    };
    Seeking first, foreign;
    REQUIRE(decode(*plain, first) == Outcome::kDecoded);
    REQUIRE_FALSE(first.made.empty());
    const auto expected = pixels;
    foreign.index_untrusted = first.made;
    Seeking none;

    REQUIRE(decode(*header, none) == Outcome::kDecoded);
    REQUIRE(none.use == SeekUse::kMarkers);
    REQUIRE(none.made.empty());
    REQUIRE((pixels == expected));
    REQUIRE(decode(*header, foreign) == Outcome::kDecoded);
    REQUIRE(foreign.use == SeekUse::kRejected);
    REQUIRE((pixels == expected));
  }
}

}  // namespace millrace
