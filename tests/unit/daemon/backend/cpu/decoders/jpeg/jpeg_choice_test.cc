// Our own JPEG decoder against libjpeg-turbo: equal pixels where it decodes, the same outcome whatever the file is.
#include <catch2/catch.hpp>
#include <random>

#include "daemon/backend/cpu/decoders/jpeg/jpeg_choice.h"
#include "daemon/backend/cpu/decoders/jpeg/jpeg_decoder.h"
#include "tests/support/host/guarded_bytes.h"
#include "tests/support/pictures/stored_size.h"
#include "tests/support/pictures/test_data.h"
#include "tests/support/pictures/test_images.h"
#include "tests/support/rounds.h"
#include "tests/unit/kernels/jpeg/jpeg_rig.h"

namespace millrace {
namespace {

struct ChosenSampling {
  int channels, h, v;
};
constexpr ChosenSampling kChosenSamplings[] = {{1, 1, 1}, {3, 1, 1}, {3, 2, 1}, {3, 1, 2}, {3, 2, 2}};

// A grey JPEG of 64x64 pixels whose scan is `bits` ('0' and '1'), with tables of a few short codes:
// DC size 1 is 0, size 0 is 10; AC 16 zeros are 0, EOB is 10, 14 zeros and a value of one bit are 110.
File tiny_code_jpeg(std::string bits) {
  std::vector<int> bytes = {0xFF, 0xD8, 0xFF, 0xDB, 0, 67, 0};
  bytes.insert(bytes.end(), 64, 8);
  const int rest[] = {0xFF, 0xC0, 0, 11, 8,    0, 64, 0, 64, 1, 1, 0x11, 0,                                         //
                      0xFF, 0xC4, 0, 21, 0,    1, 1,  0, 0,  0, 0, 0,    0, 0, 0, 0, 0, 0, 0, 0, 0, 1,    0,        //
                      0xFF, 0xC4, 0, 22, 0x10, 1, 1,  1, 0,  0, 0, 0,    0, 0, 0, 0, 0, 0, 0, 0, 0, 0xF0, 0, 0xE1,  //
                      0xFF, 0xDA, 0, 8,  1,    1, 0,  0, 63, 0};
  bytes.insert(bytes.end(), std::begin(rest), std::end(rest));
  bits.append((8 - bits.size() % 8) % 8, '1');
  for (std::size_t i = 0; i < bits.size(); i += 8) {
    bytes.push_back(std::stoi(bits.substr(i, 8), nullptr, 2));
    if (bytes.back() == 0xFF) bytes.push_back(0);
  }
  bytes.insert(bytes.end(), {0xFF, 0xD9});
  File file;
  for (const int byte : bytes) file.push_back(std::byte(byte));
  return file;
}

}  // namespace

TEST_CASE("ordinary JPEG files of any size and sampling have libjpeg-turbo's pixels", "[backend]") {
  std::mt19937 random(11);
  const kernels::Size odd_sizes[] = {{1, 1},   {2, 2},   {4, 9},   {5, 5},    {7, 1},    {8, 8},     {9, 17},
                                     {16, 16}, {17, 33}, {31, 32}, {4097, 3}, {3, 4097}, {1500, 700}};
  for (const ChosenSampling s : kChosenSamplings) {
    for (int image = 0; image < rounds(22); ++image) {
      const kernels::Size size =
          image < 13 ? odd_sizes[image] : kernels::Size{1 + below(random, 400), 1 + below(random, 300)};
      const File jpeg = make_jpeg(
          {.pixels = make_pixels(static_cast<std::uint32_t>(size.width), static_cast<std::uint32_t>(size.height),
                                 static_cast<std::uint32_t>(s.channels), random()),
           .quality = 1 + below(random, 100),
           .h_samp = s.h,
           .v_samp = s.v,
           .optimise = image % 2 == 0});

      CAPTURE(s.channels, s.h, s.v, image);
      for (int box = 0; box < 6; ++box) {
        const int taken = check_all(jpeg, size, box == 0 ? whole(size) : random_box(random, size));
        REQUIRE(taken == (s.h == 2 && size.width <= 4 ? 0 : static_cast<int>(decoders().size())));
      }
    }
  }
}

TEST_CASE("JPEG files of other kinds are left to libjpeg-turbo", "[backend]") {
  const kernels::Size size{90, 70};
  const JpegSpec others[] = {{.pixels = make_pixels(90, 70, 3, 1), .progressive = true},
                             {.pixels = make_pixels(90, 70, 4, 3)},
                             {.pixels = make_pixels(90, 70, 3, 4), .h_samp = 4, .v_samp = 1},
                             {.pixels = make_pixels(90, 70, 3, 5), .h_samp = 1, .v_samp = 4}};
  for (const JpegSpec& spec : others) {
    const File jpeg = make_jpeg(spec);
    PixelBuffer buffer, expected_buffer;

    REQUIRE(check_all(jpeg, size, whole(size)) == 0);
    REQUIRE(same_outcome(decode_jpeg(request_for(jpeg, size, {3, 5, 40, 30}), buffer, *decoders().back()),
                         decode_jpeg(request_for(jpeg, size, {3, 5, 40, 30}), expected_buffer)));
  }
}

TEST_CASE("a damaged JPEG has libjpeg-turbo's pixels or error", "[backend]") {
  std::mt19937 random(12);
  int taken = 0;
  for (int image = 0; image < rounds(600); ++image) {
    const ChosenSampling s = kChosenSamplings[image % 5];
    const kernels::Size size{8 + below(random, 180), 1 + below(random, 120)};
    File jpeg = make_jpeg(
        {.pixels = make_pixels(static_cast<std::uint32_t>(size.width), static_cast<std::uint32_t>(size.height),
                               static_cast<std::uint32_t>(s.channels), random()),
         .quality = 20 + below(random, 80),
         .h_samp = s.h,
         .v_samp = s.v,
         .optimise = image % 3 == 0});
    for (int flips = below(random, 4); flips >= 0; --flips)
      jpeg[random() % jpeg.size()] ^= std::byte(1 << random() % 8);
    if (image % 4 == 0) jpeg.resize(jpeg.size() - random() % std::min<std::size_t>(jpeg.size(), 300));

    CAPTURE(image);
    taken += check_all(jpeg, size, image % 2 ? whole(size) : random_box(random, size));
  }
  // Many flips are another picture without being an error. How many decoders there are depends on the processor.
  REQUIRE(taken > rounds(600) * static_cast<int>(decoders().size()) / 4);
}

TEST_CASE("large damaged JPEG files have libjpeg-turbo's outcome with two streams", "[backend]") {
  std::mt19937 random(13);
  const kernels::Size size{400, 300};
  for (const ChosenSampling s : kChosenSamplings) {
    const File jpeg = make_jpeg({.pixels = make_pixels(400, 300, static_cast<std::uint32_t>(s.channels), random()),
                                 .quality = 95,
                                 .h_samp = s.h,
                                 .v_samp = s.v});
    REQUIRE(jpeg.size() > 20000);
    for (int damage = 0; damage < rounds(20); ++damage) {
      File damaged = jpeg;
      const std::size_t at = 700 + random() % (jpeg.size() - 700);
      damaged[at] ^= std::byte(1 << random() % 8);
      if (damage % 3 == 0) {  // cut, with an end marker
        damaged.resize(at);
        damaged.insert(damaged.end(), {std::byte{0xFF}, std::byte{0xD9}});
      }

      CAPTURE(s.channels, s.h, s.v, damage);
      check_all(damaged, size, damage % 2 ? whole(size) : random_box(random, size));
    }
  }
}

TEST_CASE("a JPEG that lacks its last bytes is left to libjpeg-turbo", "[backend]") {
  for (const ChosenSampling s : kChosenSamplings) {
    for (const int quality : {10, 70, 100}) {
      const File jpeg = make_jpeg({.pixels = make_pixels(70, 50, static_cast<std::uint32_t>(s.channels), 3),
                                   .quality = quality,
                                   .h_samp = s.h,
                                   .v_samp = s.v});
      const kernels::Size size{70, 50};
      REQUIRE(check_all(jpeg, size, whole(size)) > 0);
      for (int lacking = 1; lacking <= 12; ++lacking) {
        File cut(jpeg.begin(), jpeg.end() - 2 - lacking);
        cut.insert(cut.end(), {std::byte{0xFF}, std::byte{0xD9}});

        CAPTURE(s.channels, s.h, s.v, quality, lacking);
        REQUIRE(check_all(cut, size, whole(size)) == 0);
      }
    }
  }
}

TEST_CASE("a run of sixteen zeros may fill a block, and no end of block follows", "[backend]") {
  std::string bits =
      "01"
      "1101"
      "000";  // DC +1; 14 zeros and +1; three times 16 zeros
  for (int block = 1; block < 64; ++block)
    bits +=
        "10"
        "1101"
        "000";  // DC as before, whose code is EOB's
  const kernels::Size size{64, 64};

  const int taken = check_all(tiny_code_jpeg(bits), size, whole(size));

  REQUIRE(taken == static_cast<int>(decoders().size()));
}

TEST_CASE("nothing outside a JPEG file's bytes is read", "[backend]") {
  std::mt19937 random(14);
  for (const ChosenSampling s : kChosenSamplings) {
    File jpeg = make_jpeg({.pixels = make_pixels(150, 110, static_cast<std::uint32_t>(s.channels), 7),
                           .quality = 93,
                           .h_samp = s.h,
                           .v_samp = s.v});
    GuardedBytes memory(jpeg.size());
    const kernels::Size size{150, 110};

    REQUIRE(check_all(memory.at_end(jpeg), size, whole(size)) > 0);
    REQUIRE(check_all(memory.at_begin(jpeg), size, whole(size)) > 0);
    while (jpeg.size() > 20) {
      jpeg.resize(jpeg.size() - 1 - random() % (1 + jpeg.size() / 8));
      check_all(memory.at_end(jpeg), size, whole(size));
    }
  }
}

TEST_CASE("our JPEG decoder stops at the deadline", "[backend]") {
  const File jpeg = make_jpeg({.pixels = make_pixels(600, 600, 3, 1)});
  PixelBuffer buffer;

  const auto decoded =
      decode_jpeg_fast({jpeg, {600, 600}, {0, 300, 600, 300}, Clock::now()}, buffer, *decoders().back());

  REQUIRE(decoded);
  REQUIRE_FALSE(*decoded);
  REQUIRE(decoded->error().code == Code::kDeadline);
}

TEST_CASE("real JPEG files, ordinary, unusual and broken, have libjpeg-turbo's outcome", "[backend]") {
  std::mt19937 random(15);
  for (const char* const name : {"photos", "jpeg-variants", "bad-jpeg"}) {
    const auto folder = test_data(name);
    if (!folder) continue;
    int taken = 0;
    for (const auto& [file_name, file] : some_files_in(*folder)) {
      const auto size = stored_size(file);
      if (!size || size->width < 1 || std::int64_t{size->width} * size->height > 1 << 22) continue;
      CAPTURE(file_name);
      taken += check_all(file, *size, whole(*size));
      taken += check_all(file, *size, random_box(random, *size));
    }
    REQUIRE(taken > 0);
  }
}

}  // namespace millrace
