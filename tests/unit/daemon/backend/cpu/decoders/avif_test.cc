// AVIF: pixels of its kinds, boxes against whole pictures, how it lies, and the verdicts on bad files. What Pillow
// makes of many more: tests/golden/avif_files.py.
#include <algorithm>
#include <string>

#include "daemon/backend/cpu/decoders/decoder_table.h"
#include "daemon/backend/cpu/decoders/heif/avif_decoder.h"
#include "tests/support/pictures/test_images.h"
#include "tests/support/skip.h"
#include "tests/unit/daemon/backend/cpu/decoders/decoder_rig.h"

namespace millrace {
namespace {

using namespace std::string_literals;

bool avif_is_there() {
  if (can_make_avif() && can_decode_avif()) return true;
  skip_loudly("AVIF: this build, or this host, has no libavif (libavif-dev)");
  return false;
}

std::vector<int> avif_samples_of(const Pixels& pixels, std::uint32_t kept) {
  std::vector<int> samples;
  for (std::size_t i = 0; i < pixels.data.size(); ++i) {
    if (i % pixels.channels < kept) samples.push_back(pixels.data[i]);
  }
  return samples;
}

std::size_t avif_place_of(const File& file, const std::string& name) {
  const File wanted = file_of(name);
  const auto found = std::search(file.begin(), file.end(), wanted.begin(), wanted.end());
  REQUIRE(found != file.end());
  return static_cast<std::size_t>(found - file.begin());
}

File with_name(File file, const std::string& name, const std::string& other) {
  const File bytes = file_of(other);
  std::copy(bytes.begin(), bytes.end(), file.begin() + static_cast<std::ptrdiff_t>(avif_place_of(file, name)));
  return file;
}

File with_number(File file, std::size_t at, std::uint32_t number) {
  for (int i = 0; i < 4; ++i) file[at + static_cast<std::size_t>(i)] = static_cast<std::byte>(number >> (24 - 8 * i));
  return file;
}

std::string box(const std::string& name, const std::string& data) {
  std::string text(4, '\0');
  for (int i = 0; i < 4; ++i) text[static_cast<std::size_t>(i)] = static_cast<char>((data.size() + 8) >> (24 - 8 * i));
  return text + name + data;
}

const std::string kFull(4, '\0');
const std::string kBegin = box("ftyp", "avif\0\0\0\0avifmif1"s);

// A description of one item, with these properties.
File described(const std::string& properties, const std::string& numbers, const std::string& more = "") {
  const std::string pitm = box("pitm", kFull + "\0\1"s);
  const std::string iinf = box("iinf", kFull + "\0\1"s + box("infe", "\2\0\0\0\0\1\0\0av01\0"s));
  const std::string ipma = box("ipma", kFull + "\0\0\0\1\0\1"s + static_cast<char>(numbers.size()) + numbers);
  const std::string iprp = box("iprp", box("ipco", properties) + ipma);
  return file_of(kBegin + box("meta", kFull + pitm + iinf + iprp + more));
}
const std::string kAvifSize = box("ispe", kFull + "\0\0\0\x07\0\0\0\5"s);

SourceInfo avif_probed(const File& file) {
  const Result<SourceInfo> info = probe_image(file, SampleLimits{}, UseOrientation::kYes);
  REQUIRE(info);
  REQUIRE(info->format == ImageFormat::kAvif);
  return *info;
}

TEST_CASE("an AVIF's pixels are those that were put in, without its alpha", "[backend]") {
  if (!avif_is_there()) return;
  for (const std::uint32_t channels : {1U, 2U, 3U, 4U}) {
    for (const int depth : {8, 10, 12}) {
      CAPTURE(channels, depth);
      const Pixels pixels = make_pixels(75, 133, channels, channels);
      const std::uint32_t kept = channels < 3 ? 1 : 3;

      std::vector<int> samples =
          decoded(decode_avif, make_avif({.pixels = pixels, .bit_depth = depth}), {75, 133}, static_cast<int>(kept));

      const std::vector<int> expected = avif_samples_of(pixels, kept);
      if (depth > 8) {  // white is 255 in 8 bits, and not quite white here
        for (std::size_t i = 0; i < samples.size(); ++i) samples[i] += samples[i] == expected[i] - 1;
      }
      REQUIRE(samples == expected);
    }
  }
}

TEST_CASE("any box of an AVIF has the pixels of the whole", "[backend]") {
  if (!avif_is_there()) return;
  std::mt19937 random(1);
  for (const std::uint32_t channels : {1U, 3U, 4U}) {
    for (const int depth : {8, 10, 12})
      check_boxes(decode_avif, make_avif({.pixels = make_pixels(75, 153, channels, 1), .bit_depth = depth}), {75, 153},
                  random);
  }
}

TEST_CASE("an AVIF lies as irot and imir say", "[backend]") {
  if (!avif_is_there()) return;
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const File file = make_avif({.pixels = make_pixels(7, 5, 3, 1), .orientation = orientation});

    REQUIRE(avif_probed(file).orientation == orientation);
    REQUIRE(avif_probed(file).stored == Size{7, 5});
  }
}

TEST_CASE("an AVIF that is cut off or damaged is an error for every box, with libavif's words", "[backend]") {
  if (!avif_is_there()) return;
  const File whole = make_avif({.pixels = make_pixels(40, 40, 3, 1)});
  File cut = whole, damaged = whole;
  cut.resize(whole.size() - 1);
  std::fill(damaged.begin() + static_cast<std::ptrdiff_t>(avif_place_of(whole, "mdat") + 4), damaged.end(),
            std::byte{0x5A});
  const std::size_t size_at = avif_place_of(whole, "ispe") + 8;

  REQUIRE(decoding_refused(decode_avif, cut, {40, 40}).starts_with("truncated AVIF: "));
  REQUIRE(decoding_refused(decode_avif, damaged, {40, 40}).starts_with("damaged AVIF: "));
  REQUIRE(decoding_refused(decode_avif, whole, {40, 39}) ==
          "the decoder finds 40x40 pixels where the header says 40x39");
  REQUIRE(decoding_refused(decode_avif, with_number(whole, size_at, 0x7FFFFFFF), {40, 40}).find("AVIF") !=
          std::string::npos);
}

TEST_CASE("nothing of the heap's is in a damaged AVIF's pixels", "[backend]") {
  if (!avif_is_there()) return;
  const File file = make_avif({.pixels = make_pixels(40, 40, 3, 1)});
  std::size_t made = 0;
  for (std::size_t at = avif_place_of(file, "mdat") + 4; at < file.size(); ++at) {
    File damaged = file;
    damaged[at] ^= std::byte{0x55};
    CAPTURE(at);
    const std::vector<std::string> both = in_two_heaps(decode_avif, damaged, {40, 40});
    REQUIRE(both[0] == both[1]);
    made += both[0].size() > 1'000 ? 1 : 0;
  }
  REQUIRE(made > 10);
}

TEST_CASE("a picture larger than its boxes say is not decoded", "[backend]") {
  if (!avif_is_there()) return;
  const File whole = make_avif({.pixels = make_pixels(600, 600, 3, 1)});
  const std::size_t at = avif_place_of(whole, "ispe") + 8;
  const File small = with_number(with_number(whole, at, 16), at + 4, 16);

  REQUIRE(avif_probed(small).stored == Size{16, 16});
  REQUIRE(decoding_refused(decode_avif, small, {16, 16}).starts_with("damaged AVIF: "));
}

TEST_CASE("decoding an AVIF stops at the deadline", "[backend]") {
  if (!avif_is_there()) return;
  REQUIRE(code_when_late(decode_avif, make_avif({.pixels = make_pixels(64, 64, 3, 1)}), {64, 64}) == Code::kDeadline);
}

TEST_CASE("the size of an AVIF and how it is turned stand in its boxes", "[backend]") {
  const std::string irot = box("irot", "\1"s), imir = box("imir", "\1"s), other = box("pasp", "12345678");

  REQUIRE(avif_probed(described(kAvifSize, "\1")).stored == Size{7, 5});
  REQUIRE(avif_probed(described(kAvifSize, "\1")).orientation == 1);
  REQUIRE(avif_probed(described(kAvifSize + irot, "\1\2")).orientation == 8);
  REQUIRE(avif_probed(described(kAvifSize + irot + imir, "\1\x82\x83")).orientation == 7);
  REQUIRE(avif_probed(described(other + imir + kAvifSize, "\3\2")).orientation == 2);
  REQUIRE(avif_probed(described(kAvifSize + irot, "\1")).orientation == 1);  // another item's
}

TEST_CASE("an AVIF whose boxes are broken is refused, and says why", "[backend]") {
  const std::string broken = "a broken AVIF: ";

  REQUIRE(refused(file_of(kBegin)) == broken + "cut off: the file ends before the boxes that say what is in it");
  File cut = described(kAvifSize, "\1");
  cut.pop_back();
  REQUIRE(refused(cut) == broken + "cut off: the file ends before the end of the boxes that say what is in it");
  REQUIRE(refused(with_name(described(kAvifSize, "\1"), "pitm", "free")) ==
          broken + "its boxes do not say which picture is meant");
  const auto not_decoded = [](const File& file) {
    const Result<SourceInfo> info = probe_image(file, SampleLimits{}, UseOrientation::kYes);
    REQUIRE(info.error().code == Code::kUnsupported);
    return info.error().message;
  };
  const std::string other = "this kind of AVIF is not decoded here: ";
  REQUIRE(not_decoded(with_number(described(kAvifSize, "\1"), kBegin.size(), 0)) ==
          other + "its box `meta` has no length");
  File animation = with_name(described(kAvifSize, "\1"), "pitm", "free");
  const File track = file_of(box("moov", ""));
  animation.insert(animation.end(), track.begin(), track.end());
  REQUIRE(not_decoded(animation) == other + "an animation without a picture beside its track");
  REQUIRE(refused(described(kAvifSize, "\2")) == broken + "its boxes do not say how large the picture is");
  REQUIRE(refused(described(kAvifSize, "")) == broken + "its boxes do not say how large the picture is");
  REQUIRE(refused(described(box("ispe", kFull + "\0\0\0\7\0\0"s), "\1")) ==
          broken + "its boxes do not say how large the picture is");
  REQUIRE(refused(described(box("ispe", kFull + "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"s), "\1")).find("over the limit") !=
          std::string::npos);
  REQUIRE(refused(described(kAvifSize, "\1", box("free", std::string(300'000, '\0'))))
              .find("more than a picture can have") != std::string::npos);
}

TEST_CASE("what an AVIF takes of memory goes by its parts, its alpha and its frames", "[backend]") {
  const std::string iloc = box("iloc", kFull + "\x44\0\0\1\0\1\0\0\0\1\0\0\0\0\0\0\0\4"s);
  const auto with_data = [&](const std::string& frames) {
    File file = described(kAvifSize, "\1", iloc);
    const std::size_t at = avif_place_of(file, "iloc") + 18;
    const auto place = static_cast<std::uint32_t>(file.size());
    file = with_number(with_number(file, at, place), at + 4, static_cast<std::uint32_t>(frames.size()));
    const File data = file_of(frames);
    file.insert(file.end(), data.begin(), data.end());
    return avif_probed(file).codec;
  };
  const std::string frame = "\x32\0"s, sequence = "\x0A\0"s;

  const CodecMemory one = with_data(sequence + frame), two = with_data(frame + frame), none = with_data(sequence);

  REQUIRE(one.needed == two.needed);
  REQUIRE(one.at_most > one.needed);
  REQUIRE(two.at_most > one.at_most);
  REQUIRE(none.at_most > two.at_most);
  REQUIRE(with_data("\x30"s) == one);  // as long as the data is
  if (!can_make_avif()) return;
  const auto made = [](const AvifSpec& spec) { return avif_probed(make_avif(spec)).codec; };
  const Pixels pixels = make_pixels(300, 300, 3, 1);
  REQUIRE(made({.pixels = pixels, .bit_depth = 10}).needed > made({.pixels = pixels}).needed);
  REQUIRE(made({.pixels = make_pixels(300, 300, 4, 1)}).needed > made({.pixels = pixels}).needed);
}

}  // namespace
}  // namespace millrace
