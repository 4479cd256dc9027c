// HEIC: the pixels that pillow-heif makes, boxes against whole pictures, how it lies, and the verdicts on bad files.
// More of what pillow-heif makes: tests/golden/heic_files.py.
#include <algorithm>
#include <string>

#include "daemon/backend/cpu/decoders/decoder_table.h"
#include "daemon/backend/cpu/decoders/heif/heic_decoder.h"
#include "daemon/heif/hevc_units.h"
#include "tests/support/pictures/heic_files.h"
#include "tests/support/skip.h"
#include "tests/unit/daemon/backend/cpu/decoders/decoder_rig.h"

namespace millrace {
namespace {

using namespace std::string_literals;

bool is_there() {
  if (can_decode_heic()) return true;
  skip_loudly("HEIC: this build, or this host, has no libde265 (libde265-dev)");
  return false;
}

std::size_t place_of(const File& file, const std::string& name) {
  const File wanted = file_of(name);
  const auto found = std::search(file.begin(), file.end(), wanted.begin(), wanted.end());
  REQUIRE(found != file.end());
  return static_cast<std::size_t>(found - file.begin());
}

File with_bytes(File file, std::size_t at, const std::string& bytes) {
  const File other = file_of(bytes);
  std::copy(other.begin(), other.end(), file.begin() + static_cast<std::ptrdiff_t>(at));
  return file;
}

SourceInfo heic_probed(const File& file) {
  const Result<SourceInfo> info = probe_image(file, SampleLimits{}, UseOrientation::kYes);
  REQUIRE(info);
  REQUIRE(info->format == ImageFormat::kHeic);
  return *info;
}

kernels::Size heic_size_of(const File& file) {
  const Size size = heic_probed(file).stored;
  return {static_cast<int>(size.width), static_cast<int>(size.height)};
}

TEST_CASE("a HEIC's pixels are those of pillow-heif", "[backend]") {
  if (!is_there()) return;
  for (const char* const name : {"colour", "grey", "alpha", "deep", "grid"}) {
    CAPTURE(name);
    const File file = heic_file(name);
    const Pixels pixels = heic_pixels(name);

    REQUIRE(heic_probed(file).stored == Size{pixels.width, pixels.height});
    REQUIRE(decoded(decode_heic, file, heic_size_of(file), static_cast<int>(pixels.channels)) ==
            std::vector<int>(pixels.data.begin(), pixels.data.end()));
  }
}

TEST_CASE("what a damaged HEIC has no data for is black, and nothing of the heap's", "[backend]") {
  if (!is_there()) return;
  const File file = heic_file("colour");
  std::size_t made = 0;
  for (std::size_t at = file.size() / 2; at < file.size(); ++at) {
    File damaged = file;
    damaged[at] ^= std::byte{0x55};
    CAPTURE(at);
    const std::vector<std::string> both = in_two_heaps(decode_heic, damaged, heic_size_of(file));
    REQUIRE(both[0] == both[1]);
    made += both[0].size() > 1'000 ? 1 : 0;
  }
  REQUIRE(made > 0);
}

TEST_CASE("any box of a HEIC has the pixels of the whole", "[backend]") {
  if (!is_there()) return;
  std::mt19937 random(1);
  for (const char* const name : {"colour", "grey", "deep", "grid"}) {
    CAPTURE(name);
    const File file = heic_file(name);
    check_boxes(decode_heic, file, heic_size_of(file), random);
  }
}

TEST_CASE("a HEIC lies as irot and imir say, in the file's order", "[backend]") {
  const File file = heic_file("colour");
  const std::size_t at = place_of(file, "pixi");  // of 16 bytes, as two boxes of 8 and 8 with room for a byte each
  REQUIRE(std::to_integer<int>(file[at - 1]) == 16);
  const auto turned = [&](const std::string& name, char value) {
    return heic_probed(with_bytes(file, at, name + value)).orientation;
  };

  REQUIRE(heic_probed(file).orientation == 1);
  REQUIRE(turned("irot", 1) == 8);
  REQUIRE(turned("irot", 2) == 3);
  REQUIRE(turned("irot", 3) == 6);
  REQUIRE(turned("imir", 0) == 4);
  REQUIRE(turned("imir", 1) == 2);
}

TEST_CASE("a HEIC that is cut off or damaged is an error for every box", "[backend]") {
  if (!is_there()) return;
  const File whole = heic_file("colour");
  File cut = whole;
  cut.resize(whole.size() - 1);
  const File no_picture = with_bytes(whole, place_of(whole, "hvc1"), "av01");
  const File no_configuration = with_bytes(whole, place_of(whole, "hvcC"), "free");

  REQUIRE(decoding_refused(decode_heic, cut, {40, 30}).starts_with("truncated HEIC: "));
  REQUIRE(decoding_refused(decode_heic, no_configuration, {40, 30}).starts_with("damaged HEIC: "));
  REQUIRE(decoding_refused(decode_heic, whole, {40, 29}) ==
          "the decoder finds 40x30 pixels where the header says 40x29");
  PixelBuffer buffer;
  const auto other = decode_heic(request_of(no_picture, {40, 30}, {0, 0, 1, 1}), buffer);
  REQUIRE(other.error().code == Code::kUnsupported);
}

TEST_CASE("a picture that is larger than a HEIC's boxes say never reaches libde265", "[backend]") {
  if (!is_there()) return;
  const File whole = heic_file("grid");
  const std::size_t at = place_of(whole, "hvcC") + 4;
  const std::size_t end = std::min(whole.size(), at + 200);
  const ByteView configuration = ByteView(whole).subspan(at, end - at);

  REQUIRE(read_hevc_units(configuration, {}, {64, 64}, {}));
  REQUIRE_FALSE(read_hevc_units(configuration, {}, {0, 0}, {}));
}

TEST_CASE("decoding a HEIC stops at the deadline", "[backend]") {
  if (!is_there()) return;
  REQUIRE(code_when_late(decode_heic, heic_file("colour"), {40, 30}) == Code::kDeadline);
  REQUIRE(code_when_late(decode_heic, heic_file("grid"), {130, 70}) == Code::kDeadline);
}

TEST_CASE("a grid that refers to itself, or has too few parts, is refused", "[backend]") {
  if (!is_there()) return;
  const File whole = heic_file("grid");
  const std::size_t dimg = place_of(whole, "dimg");
  const std::string itself{static_cast<char>(whole[dimg + 4]), static_cast<char>(whole[dimg + 5])};
  const kernels::Size size = heic_size_of(whole);
  PixelBuffer buffer;

  const auto of_itself = decode_heic(request_of(with_bytes(whole, dimg + 8, itself), size, {0, 0, 1, 1}), buffer);
  const auto too_few = decode_heic(request_of(with_bytes(whole, dimg + 6, "\0\1"s), size, {0, 0, 1, 1}), buffer);

  REQUIRE_FALSE(of_itself);
  REQUIRE_FALSE(too_few);
  REQUIRE(too_few.error().message.starts_with("damaged HEIC: "));
}

TEST_CASE("what a HEIC takes of memory goes by one part of it", "[backend]") {
  const File colour = heic_file("colour"), deep = heic_file("deep"), grid = heic_file("grid");

  REQUIRE(heic_probed(colour).codec.needed < 5_MiB);
  REQUIRE(heic_probed(colour).codec.at_most == heic_probed(colour).codec.needed);
  REQUIRE(heic_probed(grid).codec.at_most > heic_probed(grid).codec.needed);
  REQUIRE(heic_probed(deep).has.deep);
}

}  // namespace
}  // namespace millrace
