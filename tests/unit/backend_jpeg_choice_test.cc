// Our own JPEG decoder against libjpeg-turbo: equal pixels where it decodes, the same outcome whatever the file is.
#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "daemon/backend/cpu/jpeg_choice.h"
#include "daemon/backend/cpu/jpeg_decoder.h"
#include "tests/support/test_data.h"
#include "tests/support/test_images.h"

namespace millrace {
namespace {

using kernels::Target;
using kernels::jpeg::Decoder;
using kernels::jpeg::Streams;
using File = std::vector<std::byte>;

struct Sampling {
  int channels, h, v;
};
constexpr Sampling kSamplings[] = {{1, 1, 1}, {3, 1, 1}, {3, 2, 1}, {3, 1, 2}, {3, 2, 2}};

int below(std::mt19937& random, int bound) {
  return static_cast<int>(random() % static_cast<unsigned>(bound));
}

kernels::Box whole(kernels::Size size) {
  return {0, 0, size.width, size.height};
}

kernels::Box random_box(std::mt19937& random, kernels::Size size) {
  const int left = below(random, size.width), top = below(random, size.height);
  return {left, top, 1 + below(random, size.width - left), 1 + below(random, size.height - top)};
}

DecodeRequest request_for(ByteView file, kernels::Size size, const kernels::Box& box) {
  return {file, size, box, Clock::now() + std::chrono::minutes(5)};
}

bool same_pixels(const kernels::U8View& a, const kernels::U8View& b) {
  if (a.size() != b.size() || a.channels != b.channels) return false;
  for (int y = 0; y < a.height; ++y) {
    if (std::memcmp(a.row(y), b.row(y), static_cast<std::size_t>(a.width) * a.channels) != 0) return false;
  }
  return true;
}

// Equal pixels, or equal errors.
bool same_outcome(const Result<kernels::U8View>& a, const Result<kernels::U8View>& b) {
  if (a && b) return same_pixels(*a, *b);
  return !a && !b && a.error().code == b.error().code && a.error().message == b.error().message;
}

// A decoder for each instruction set, alone and in pairs of streams.
std::vector<std::unique_ptr<Decoder>>& decoders() {
  static std::vector<std::unique_ptr<Decoder>> all = [] {
    std::vector<std::unique_ptr<Decoder>> made;
    for (const Target target : {Target::kScalar, Target::kAvx2, Target::kAvx512}) {
      if (!kernels::is_available(target)) {
        WARN("this processor lacks " << name_of(target) << ": not tested");
        continue;
      }
      for (const Streams streams : {Streams::kOne, Streams::kTwo})
        made.push_back(std::make_unique<Decoder>(target, streams));
    }
    return made;
  }();
  return all;
}

// How many of the decoders took the file themselves; all of them came to libjpeg-turbo's outcome.
int check_all(ByteView file, kernels::Size size, const kernels::Box& box) {
  PixelBuffer expected_buffer, buffer;
  const auto expected = decode_jpeg(request_for(file, size, box), expected_buffer);
  int taken = 0;
  for (const auto& decoder : decoders()) {
    const auto decoded = decode_jpeg_fast(request_for(file, size, box), buffer, *decoder);
    if (!decoded) continue;
    ++taken;
    CAPTURE(size.width, size.height, box.left, box.top, box.width, box.height, taken);
    REQUIRE(same_outcome(expected, *decoded));
  }
  return taken;
}

std::vector<std::pair<std::string, File>> files_in(const std::string& folder) {
  std::vector<std::pair<std::string, File>> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream stream(entry.path(), std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
    const auto* const bytes = reinterpret_cast<const std::byte*>(text.data());
    files.emplace_back(entry.path().filename(), File(bytes, bytes + text.size()));
  }
  return files;
}

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

// Memory that ends, and begins, where nothing may be read.
class Guarded {
 public:
  explicit Guarded(std::size_t bytes) : size_((bytes + page() - 1) / page() * page()) {
    void* const all = mmap(nullptr, size_ + 2 * page(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(all != MAP_FAILED);
    memory_ = static_cast<std::byte*>(all) + page();
    REQUIRE(mprotect(memory_, size_, PROT_READ | PROT_WRITE) == 0);
  }
  ~Guarded() { munmap(memory_ - page(), size_ + 2 * page()); }
  ByteView at_end(const File& file) { return put(memory_ + size_ - file.size(), file); }
  ByteView at_begin(const File& file) { return put(memory_, file); }

 private:
  static std::size_t page() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }
  static ByteView put(std::byte* at, const File& file) {
    std::memcpy(at, file.data(), file.size());
    return {at, file.size()};
  }
  std::byte* memory_ = nullptr;
  std::size_t size_;
};

}  // namespace

TEST_CASE("ordinary JPEG files of any size and sampling have libjpeg-turbo's pixels", "[backend]") {
  std::mt19937 random(11);
  const kernels::Size odd_sizes[] = {{1, 1},   {2, 2},   {4, 9},   {5, 5},    {7, 1},    {8, 8},     {9, 17},
                                     {16, 16}, {17, 33}, {31, 32}, {4097, 3}, {3, 4097}, {1500, 700}};
  for (const Sampling s : kSamplings) {
    for (int image = 0; image < 40; ++image) {
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
                             {.pixels = make_pixels(90, 70, 3, 2), .restart_interval = 3},
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
  for (int image = 0; image < 1500; ++image) {
    const Sampling s = kSamplings[image % 5];
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
  REQUIRE(taken > 1000);  // many flips are another picture without being an error
}

TEST_CASE("large damaged JPEG files have libjpeg-turbo's outcome with two streams", "[backend]") {
  std::mt19937 random(13);
  const kernels::Size size{400, 300};
  for (const Sampling s : kSamplings) {
    const File jpeg = make_jpeg({.pixels = make_pixels(400, 300, static_cast<std::uint32_t>(s.channels), random()),
                                 .quality = 95,
                                 .h_samp = s.h,
                                 .v_samp = s.v});
    REQUIRE(jpeg.size() > 20000);
    for (int damage = 0; damage < 60; ++damage) {
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
  for (const Sampling s : kSamplings) {
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
  for (const Sampling s : kSamplings) {
    File jpeg = make_jpeg({.pixels = make_pixels(150, 110, static_cast<std::uint32_t>(s.channels), 7),
                           .quality = 93,
                           .h_samp = s.h,
                           .v_samp = s.v});
    Guarded memory(jpeg.size());
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
    for (const auto& [file_name, file] : files_in(*folder)) {
      const auto size = jpeg_size(file);
      if (!size || size->width < 1 || std::int64_t{size->width} * size->height > 1 << 22) continue;
      CAPTURE(file_name);
      taken += check_all(file, *size, whole(*size));
      taken += check_all(file, *size, random_box(random, *size));
    }
    REQUIRE(taken > 0);
  }
}

}  // namespace millrace
