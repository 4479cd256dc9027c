// Packed forms of JPEG files: which files get one, and that a tensor made from it is the file's.
#include <catch2/catch.hpp>
#include <cstring>
#include <random>

#include "daemon/backend/cpu/decoders/jpeg/jpeg_choice.h"
#include "daemon/backend/cpu/decoders/jpeg/jpeg_decoder.h"
#include "daemon/backend/cpu/making/image_maker.h"
#include "daemon/backend/cpu/making/pack_jpeg.h"
#include "daemon/formats/probe.h"
#include "daemon/plan/draw_geometry.h"
#include "tests/support/jpeg/jpeg_scans.h"
#include "tests/support/jpeg/random_jpeg.h"
#include "tests/support/pictures/test_data.h"
#include "tests/support/pictures/test_images.h"
#include "tests/support/rounds.h"
#include "tests/unit/kernels/jpeg/jpeg_rig.h"

namespace millrace {
namespace {

SampleLimits packed_patient() {
  SampleLimits limits;
  limits.time = std::chrono::minutes(10);  // other processes may hold this one up
  return limits;
}

std::optional<EncodedImage> image_of(ByteView file) {
  EncodedBytes bytes(file.size());
  if (!file.empty()) std::memcpy(bytes.writable().data(), file.data(), file.size());
  const Result<SourceInfo> info = probe_image(bytes.view(), SampleLimits{}, UseOrientation::kYes);
  if (!info || info->format != ImageFormat::kJpeg) return std::nullopt;
  return EncodedImage{.bytes = std::move(bytes), .info = *info};
}

Result<std::vector<std::uint8_t>> pack(const EncodedImage& image,
                                       std::chrono::seconds time = std::chrono::minutes(10)) {
  static kernels::jpeg::Decoder decoder;
  static kernels::packed::Encoder encoder;
  DecodingInLane libraries;
  return pack_jpeg(image.bytes.view(), image.info, {}, 0, decoder, encoder, Clock::now() + time, libraries, 0);
}

// What stands in for the file: no bytes of it.
EncodedImage packed_image(const EncodedImage& image, const std::vector<std::uint8_t>& packed,
                          std::size_t padding = CachedBlock::kPadding) {
  const ByteView bytes{reinterpret_cast<const std::byte*>(packed.data()), packed.size()};
  EncodedImage made{.bytes = {}, .info = image.info};
  made.kept = CachedForm{CachedKind::kPacked, CachedBlock::copy_of(bytes, padding)};
  return made;
}

struct PackedMade {
  std::vector<std::byte> tensor;
  std::optional<Error> error;
};

PackedMade make_packed(EncodedImage& image, const Recipe& recipe, const SampleGeometry& geometry,
                       ImageWorkspace& workspace, Fidelity fidelity) {
  PackedMade made{std::vector<std::byte>(image_bytes(recipe, geometry.output()).count), std::nullopt};
  SampleTask task{0, std::move(image), geometry, in_host_memory(made.tensor)};
  made.error = make_image(task, recipe, packed_patient(), workspace, fidelity).error;
  image = std::move(task.image);
  return made;
}

SampleGeometry packed_geometry_of(const EncodedImage& image, const Recipe& recipe, std::uint64_t epoch) {
  const auto geometry = draw_geometry(recipe, {}, image.info, RandomKey{7, epoch, SampleId{0}}, SampleLimits{}.side);
  REQUIRE(geometry);
  return *geometry;
}

std::vector<Recipe> recipes(std::uint32_t side) {
  Recipe train, middle, nearest;
  train.crop = RandomResizedCrop{};
  train.resize = ExactSize{{side, side}};
  train.flip_probability = 0.5F;
  middle.resize = ShorterSide{side + 20};
  middle.centre_crop = Size{side, side};
  nearest = train;
  nearest.filter = Filter::kNearest;
  return {train, middle, nearest};
}

// All tensors of the file and of its packed form are equal, on every instruction set. `fast` of a file with restarts is
// our decoder's without vectors, too, which a packed form does not tell.
enum class Restarts { kNone, kSome };
void check_tensors(EncodedImage& image, std::uint32_t side, std::uint64_t epochs, Restarts restarts = Restarts::kNone) {
  const auto packed = pack(image);
  if (!packed) FAIL(packed.error().message);
  EncodedImage kept = packed_image(image, *packed);
  for (const kernels::Target target : kernels::available_targets()) {
    ImageWorkspace files(JpegPath::kFastest, {.target = target}), forms(JpegPath::kFastest, {.target = target});
    for (const Recipe& recipe : recipes(side)) {
      for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
        for (const Fidelity fidelity : {Fidelity::kExact, Fidelity::kFast}) {
          CAPTURE(kernels::name_of(target), static_cast<int>(recipe.filter), epoch, static_cast<int>(fidelity));
          if (restarts == Restarts::kSome && fidelity == Fidelity::kFast && target == kernels::Target::kScalar)
            continue;
          const SampleGeometry geometry = packed_geometry_of(image, recipe, epoch);
          const PackedMade expected = make_packed(image, recipe, geometry, files, fidelity);
          const PackedMade made = make_packed(kept, recipe, geometry, forms, fidelity);
          REQUIRE_FALSE(expected.error);
          if (made.error) FAIL(made.error->message);
          REQUIRE((made.tensor == expected.tensor));  // in brackets: thousands of numbers say nothing
        }
      }
    }
  }
}

struct ChromaSampling {
  std::uint32_t channels;
  int h, v;
};
constexpr ChromaSampling kPackedSamplings[] = {{1, 1, 1}, {3, 1, 1}, {3, 2, 1}, {3, 1, 2}, {3, 2, 2}};

JpegSpec spec_of(const ChromaSampling& sampling, std::uint32_t width, std::uint32_t height) {
  return {.pixels = make_pixels(width, height, sampling.channels, 3), .h_samp = sampling.h, .v_samp = sampling.v};
}

// Whether the file gets a packed form: then it decodes whole, and has the same pixels, as have its parts.
bool check_pixels(ByteView file, std::mt19937& random, int boxes) {
  const auto image = image_of(file);
  if (!image) return false;
  const kernels::Size size{static_cast<int>(image->info.stored.width), static_cast<int>(image->info.stored.height)};
  const auto packed = pack(*image);
  if (!packed) {
    PixelBuffer buffer;
    const auto decoded = decode_jpeg(request_for(file, size, whole(size)), buffer);
    if (packed.error().code != Code::kUnsupported && decoded) {
      CAPTURE(packed.error().message);
      REQUIRE(packed.error().code == Code::kInvalid);  // Pillow delivers damage that libjpeg warns of
    }
    return false;
  }
  std::vector<std::uint8_t> bytes = *packed;
  bytes.resize(bytes.size() + kernels::packed::kPadding);
  kernels::packed::PackedImage form;
  REQUIRE(form.read({bytes.data(), packed->size()}, kernels::packed::Check::kChecksum));
  PixelBuffer theirs, ours;
  for (int i = 0; i <= boxes; ++i) {
    DecodeRequest request = request_for(file, size, i == 0 ? whole(size) : random_box(random, size));
    const auto expected = decode_jpeg(request, theirs);
    CAPTURE(request.box.left, request.box.top, request.box.width, request.box.height);
    if (!expected) FAIL(expected.error().message);
    request.packed = &form;
    for (const auto& decoder : decoders()) {
      const auto decoded = decode_jpeg_fast(request, ours, *decoder);
      REQUIRE(decoded);
      REQUIRE(*decoded);
      REQUIRE(same_pixels(**decoded, *expected));
    }
  }
  return true;
}

}  // namespace

TEST_CASE("tensors from packed forms are the file's, upright and turned, of every sampling", "[backend][packed]") {
  int combination = 0;
  for (const ChromaSampling& sampling : kPackedSamplings) {
    for (const bool progressive : {false, true}) {
      for (const int orientation : {1, 3, 6, 7}) {
        if (!is_taken(combination++)) continue;
        CAPTURE(sampling.channels, sampling.h, sampling.v, progressive, orientation);
        JpegSpec spec = spec_of(sampling, 310, 230);
        spec.progressive = progressive;
        spec.exif_orientation = orientation;
        auto image = image_of(make_jpeg(spec));
        REQUIRE(image);
        // So large that `fast` does not have libjpeg-turbo shrink blocks of progressive files.
        check_tensors(*image, progressive ? 100 : 40, 3);
      }
    }
  }
}

TEST_CASE("tensors from packed forms of files with restarts are the file's", "[backend][packed]") {
  JpegSpec spec = spec_of({3, 2, 2}, 310, 230);
  spec.restart_interval = 9;
  auto image = image_of(make_jpeg(spec));
  REQUIRE(image);
  check_tensors(*image, 100, 3, Restarts::kSome);
}

TEST_CASE("packed forms of photographs and unusual files have the file's pixels", "[backend][packed]") {
  std::mt19937 random(61);
  for (const char* const folder : {"photos", "jpeg-variants", "bad-jpeg"}) {
    const auto path = test_data(folder);
    if (!path) continue;
    int packed = 0;
    for (const auto& [name, file] : some_files_in(*path)) {
      if (file.size() > 300'000) continue;  // the others show the same
      CAPTURE(name);
      packed += check_pixels(file, random, 1);
    }
    INFO(folder);
    REQUIRE(packed > 0);
  }
}

TEST_CASE("random scans of random streams are packed with libjpeg-turbo's pixels", "[backend][packed]") {
  std::mt19937 random(62);
  int packed = 0, refused = 0;
  for (int i = 0; i < rounds(150); ++i) {
    CAPTURE(i);
    const JpegStream stream = draw_jpeg({.kind = i % 4 == 0 ? JpegDraw::Kind::kAny : JpegDraw::Kind::kPlain}, random);
    const auto file =
        with_scans(write_jpeg(stream).bytes, draw_scans(static_cast<int>(stream.components.size()), random));
    if (!file) continue;
    ++(check_pixels(*file, random, 3) ? packed : refused);
  }
  REQUIRE(packed > rounds(40));
  REQUIRE(refused > rounds(5));
}

TEST_CASE("damaged and truncated files get no packed form", "[backend][packed]") {
  std::mt19937 random(63);
  for (const bool progressive : {false, true}) {
    JpegSpec spec = spec_of({3, 2, 2}, 200, 170);
    spec.progressive = progressive;
    const File good = make_jpeg(spec);
    REQUIRE(check_pixels(good, random, 2));
    for (int i = 0; i < rounds(60); ++i) {
      File file = good;
      if (i % 2 == 0) file.resize(file.size() - 1 - random() % (file.size() / 2));
      if (i % 2 == 1) file[file.size() / 4 + random() % (file.size() / 2)] ^= std::byte(1U << random() % 8);
      CAPTURE(progressive, i);
      const bool packed = check_pixels(file, random, 2);
      if (i % 2 == 0) REQUIRE_FALSE(packed);
    }
  }
}

TEST_CASE("what is no grey or YCbCr file with chroma at full or half size gets no packed form", "[backend][packed]") {
  std::mt19937 random(64);
  JpegSpec cmyk{.pixels = make_pixels(90, 60, 4, 1), .h_samp = 1, .v_samp = 1, .progressive = true};
  JpegSpec quarter{.pixels = make_pixels(90, 60, 3, 1), .h_samp = 4, .v_samp = 1, .progressive = true};
  JpegSpec arithmetic{.pixels = make_pixels(90, 60, 3, 1), .progressive = true, .arithmetic = true};
  JpegSpec narrow{.pixels = make_pixels(3, 60, 3, 1), .progressive = true};  // whose chroma libjpeg does not smooth
  for (const JpegSpec& spec : {cmyk, quarter, arithmetic, narrow}) {
    const auto image = image_of(make_jpeg(spec));
    REQUIRE(image);
    REQUIRE(pack(*image).error().code == Code::kUnsupported);
  }
  const File rgb =
      as_rgb(make_jpeg({.pixels = make_pixels(90, 60, 3, 1), .h_samp = 1, .v_samp = 1, .progressive = true}));
  REQUIRE(pack(*image_of(rgb)).error().code == Code::kUnsupported);
}

TEST_CASE("progressive files that lack scans, or bits of coefficients, get no packed form", "[backend][packed]") {
  const File good = make_jpeg({.pixels = make_pixels(130, 90, 3, 2), .progressive = true});
  const std::vector<JpegScan> all = simple_progression();
  REQUIRE(pack(*image_of(*with_scans(good, all))));
  for (std::size_t left = 1; left < all.size(); ++left) {
    CAPTURE(left);
    const auto packed =
        pack(*image_of(*with_scans(good, {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(left)})));
    REQUIRE_FALSE(packed);
    REQUIRE(packed.error().code == Code::kUnsupported);
  }
}

TEST_CASE("quantisation tables that change between scans count as libjpeg-turbo counts them", "[backend][packed]") {
  std::mt19937 random(65);
  const File good = *with_scans(make_jpeg({.pixels = make_pixels(130, 90, 3, 2)}), simple_progression());
  const std::vector<std::size_t> scans = scans_of(good);
  REQUIRE(scans.size() == simple_progression().size());
  for (const std::size_t at : scans) {
    for (const int table : {0, 1}) {
      CAPTURE(at, table);
      REQUIRE(check_pixels(with_quant_table(good, at, table, 5), random, 2));
    }
  }
  File components = *with_scans(make_jpeg({.pixels = make_pixels(130, 90, 3, 2)}), sequential_scans(3));
  const std::vector<std::size_t> each = scans_of(components);
  REQUIRE(check_pixels(with_quant_table(components, each[2], 1, 5), random, 2));  // Cr has other steps than Cb
}

TEST_CASE("packing keeps the deadline", "[backend][packed]") {
  for (const bool progressive : {false, true}) {
    const auto image = image_of(make_jpeg({.pixels = make_pixels(400, 300, 3, 2), .progressive = progressive}));
    REQUIRE(pack(*image, std::chrono::seconds(-1)).error().code == Code::kDeadline);
  }
}

TEST_CASE("packing takes no more memory than decoding was charged for", "[backend][packed]") {
  auto image = image_of(make_jpeg({.pixels = make_pixels(1200, 900, 3, 2), .progressive = true}));
  REQUIRE(pack(*image));
  image->info.codec.at_most = Bytes{1 << 20};
  REQUIRE(pack(*image).error().code == Code::kExhausted);
}

TEST_CASE("a packed form that is not of the image is our own fault, and read nowhere outside", "[backend][packed]") {
  const auto image = image_of(make_jpeg(spec_of({3, 2, 2}, 310, 230)));
  const auto other = image_of(make_jpeg(spec_of({3, 2, 2}, 310, 231)));
  const Recipe recipe = recipes(40)[0];
  const SampleGeometry geometry = packed_geometry_of(*image, recipe, 0);
  const std::vector<std::uint8_t> good = *pack(*image);
  std::vector<std::uint8_t> cut(good.begin(), good.end() - 5);
  ImageWorkspace workspace;
  EncodedImage png = packed_image(*image, good);
  png.info.format = ImageFormat::kPng;
  EncodedImage wrong[] = {packed_image(*image, *pack(*other)), packed_image(*image, cut),
                          packed_image(*image, good, 64), packed_image(*image, {}), std::move(png)};
  for (EncodedImage& kept : wrong) {
    for (const Fidelity fidelity : {Fidelity::kExact, Fidelity::kFast}) {
      const PackedMade made = make_packed(kept, recipe, geometry, workspace, fidelity);
      REQUIRE(made.error);
      REQUIRE(made.error->code == Code::kInternal);
    }
  }
}

}  // namespace millrace
