// K1 where places of the scan are known: by a seek index, and behind restart markers.
#include <algorithm>

#include "tests/support/pictures/test_data.h"
#include "tests/support/rounds.h"
#include "tests/unit/kernels/cuda/tokenise_rig.h"
#include "tests/unit/kernels/jpeg/jpeg_rig.h"

namespace millrace::kernels::cuda {
namespace {

using kernels::jpeg::FileBytes;
using kernels::jpeg::Header;
using kernels::jpeg::read_header;
using kernels::jpeg::SeekIndex;
using kernels::jpeg::SeekPlace;

constexpr std::uint64_t kOwner = 3;

// The index that the CPU decoder makes of the whole image; empty: it makes none.
std::vector<std::uint8_t> make_index(const Header& header) {
  static kernels::jpeg::Decoder decoder;
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(header.size.width) *
                                   static_cast<std::size_t>(header.size.height * header.components));
  const std::ptrdiff_t stride = std::ptrdiff_t{header.size.width} * header.components;
  kernels::jpeg::Seeking seeking{.owner = kOwner};
  const auto outcome = decoder.decode(header, whole(header.size),
                                      {pixels.data(), header.size.width, header.size.height, header.components, stride},
                                      std::chrono::steady_clock::time_point::max(), &seeking);
  if (outcome != kernels::jpeg::Outcome::kDecoded) return {};
  return seeking.made;
}

Segment segment_of(const SeekPlace& begin, const SeekPlace& end) {
  Segment segment{.first_bit = static_cast<std::uint32_t>(begin.bit),
                  .end_bit = static_cast<std::uint32_t>(end.bit),
                  .first_mcu = static_cast<std::uint32_t>(begin.mcu),
                  .mcus = static_cast<std::uint32_t>(end.mcu - begin.mcu),
                  .checked = kEndExact};
  for (std::size_t i = 0; i < kMostComponents; ++i) {
    segment.predictors[i] = static_cast<std::int16_t>(begin.predictors[i]);
    segment.end_predictors[i] = static_cast<std::int16_t>(end.predictors[i]);
  }
  return segment;
}

// The pieces of an index that meet the wanted rows.
std::vector<Segment> segments_of(const SeekIndex& index, const TokeniseImage& image) {
  const std::int64_t columns = index.grid().columns;
  std::vector<Segment> segments;
  for (std::size_t i = 1; i < index.places().size(); ++i) {
    const SeekPlace &begin = index.places()[i - 1], &end = index.places()[i];
    if (end.mcu > image.first_row * columns && begin.mcu < image.end_row * columns)
      segments.push_back(segment_of(begin, end));
  }
  return segments;
}

// `columns` of a segment list: those of the image with an index; nullopt: no index.
std::optional<TokeniseImage> with_index(const Header& header, std::mt19937& random) {
  const auto bytes = make_index(header);
  SeekIndex index;
  if (bytes.empty() || !index.read(bytes, header, kOwner)) return std::nullopt;
  TokeniseImage image = some_rows(header, random);
  if (index.places().back().mcu < index.grid().mcus()) return std::nullopt;
  image.segments = segments_of(index, image);
  return image;
}

// Decoded by segments as by the CPU decoder, and no longer with anything about a segment changed.
void check_indexed(const TokeniseImage& image, const std::vector<JpegBlock>& levels, std::mt19937& random) {
  const auto result = tokenise_one(image, random_run(random));
  REQUIRE(result);
  REQUIRE(result->status == Status::kDone);
  REQUIRE((result->blocks == wanted_of(levels, image)));

  TokeniseImage wrong = image;
  Segment& segment = wrong.segments[random() % wrong.segments.size()];
  switch (random() % 4) {
    case 0:
      segment.end_bit += random() % 2 == 0 ? 1 : 8;
      break;
    case 1:
      segment.end_predictors[random() % static_cast<unsigned>(image.header.components)] ^= 1;
      break;
    case 2:
      segment.predictors[random() % static_cast<unsigned>(image.header.components)] ^= 4;
      break;
    default:
      ++segment.mcus;
  }
  const auto refused = tokenise_one(wrong, random_run(random));
  REQUIRE(refused->status == Status::kNotHere);
}

bool fit_tokens(const std::vector<JpegBlock>& blocks) {
  return std::all_of(blocks.begin(), blocks.end(), fits_tokens);
}

// A stream with restarts: the header of the same without, and a segment between any two markers.
struct Restarted {
  TokeniseImage image;
  JpegFile file;
  std::vector<JpegBlock> levels;
};
Restarted restarted(const JpegStream& stream) {
  JpegStream plain = stream;
  plain.restart_interval = 0;
  const JpegFile without = write_jpeg(plain);
  Restarted result{.file = write_jpeg(stream)};
  static std::vector<std::byte> header_bytes;  // what the header's scan points into
  header_bytes = without.bytes;
  const auto header = read_header(file_bytes(header_bytes));
  if (!header) return result;
  result.image = all_rows(*header);
  result.image.header.scan = file_bytes(result.file.bytes).subspan(result.file.scan);
  result.image.restart_interval = static_cast<std::uint32_t>(stream.restart_interval);
  result.levels =
      with_levels(stream.blocks, *header, static_cast<std::size_t>(stream.restart_interval * blocks_in_mcu(stream)));
  const FileBytes scan = result.image.header.scan;
  const auto mcus = static_cast<std::uint32_t>(mcu_count(stream));
  std::uint32_t begin = 0, mcu = 0;
  for (std::uint32_t i = 0; i + 1 < scan.size() && mcu < mcus; ++i) {
    const bool is_restart = scan[i] == 0xFF && scan[i + 1] >= 0xD0 && scan[i + 1] <= 0xD7;
    if (!is_restart && (scan[i] != 0xFF || scan[i + 1] != 0xD9)) continue;
    const std::uint32_t count = std::min(result.image.restart_interval, mcus - mcu);
    result.image.segments.push_back({.first_bit = begin * 8,
                                     .end_bit = i * 8,
                                     .first_mcu = mcu,
                                     .mcus = count,
                                     .checked = is_restart ? kEndPadded : kEndUnknown});
    mcu += count;
    begin = i + 2;
  }
  return result;
}

}  // namespace

TEST_CASE("random streams with a seek index have the CPU decoder's coefficients", "[cuda]") {
  std::mt19937 random(71);
  int taken = 0;
  for (int i = 0; i < rounds(150); ++i) {
    JpegDraw draw{.width = 60 + below(random, 200), .height = 40 + below(random, 200)};
    const JpegStream stream = draw_unbroken(draw, random);
    const JpegFile file = write_jpeg(stream);
    const auto header = read_header(file_bytes(file.bytes));
    if (!header || !fit_tokens(stream.blocks)) continue;
    const auto image = with_index(*header, random);
    if (!image) continue;
    CAPTURE(i);
    check_indexed(*image, with_levels(stream.blocks, *header), random);
    ++taken;
  }
  REQUIRE(taken > 30);
}

TEST_CASE("photographs with a seek index have the CPU decoder's coefficients", "[cuda]") {
  std::mt19937 random(72);
  const auto folder = test_data("photos");
  if (!folder) return;
  kernels::jpeg::Decoder decoder;
  int taken = 0;
  for (const auto& [name, file] : files_in(*folder)) {
    const auto header = read_header(file_bytes(file));
    if (!header || random() % 3 != 0) continue;
    const auto image = with_index(*header, random);
    const auto blocks = decode_blocks(decoder, file);
    if (!image || !blocks) continue;
    CAPTURE(name);
    check_indexed(*image, with_levels(*blocks, *header), random);
    ++taken;
  }
  REQUIRE(taken > 10);
}

TEST_CASE("only the blocks of the segments given are put out", "[cuda]") {
  std::mt19937 random(73);
  const JpegDraw draw{.width = 300, .height = 200, .h = 1, .v = 1, .components = 3, .density = 100};
  JpegStream stream = draw_unbroken(draw, random);
  while (!fit_tokens(stream.blocks)) stream = draw_unbroken(draw, random);
  const JpegFile file = write_jpeg(stream);
  const auto header = read_header(file_bytes(file.bytes));
  auto image = with_index(*header, random);
  REQUIRE(image);
  const auto levels = with_levels(stream.blocks, *header);
  std::erase_if(image->segments, [&](const Segment&) { return random() % 2 == 0; });
  REQUIRE_FALSE(image->segments.empty());

  const auto result = tokenise_one(*image, random_run(random));

  REQUIRE(result->status == Status::kDone);
  auto expected = wanted_of(levels, *image);
  const std::size_t first = image->first_row * expected.size() / (image->end_row - image->first_row);
  std::vector<bool> covered(levels.size());
  for (const Segment& segment : image->segments)
    std::fill_n(covered.begin() + static_cast<std::ptrdiff_t>(3 * segment.first_mcu), 3 * segment.mcus, true);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (!covered[first + i]) expected[i].fill(kUnset);
  }
  REQUIRE((result->blocks == expected));
}

TEST_CASE("streams with restart markers have the coefficients that were coded", "[cuda]") {
  std::mt19937 random(74);
  int taken = 0;
  for (int i = 0; i < rounds(200); ++i) {
    JpegStream stream = draw_unbroken({}, random);
    stream.restart_interval = 1 + below(random, i % 2 == 0 ? 3 : 40);
    const Restarted made = restarted(stream);
    if (made.levels.empty() || !fit_tokens(stream.blocks)) continue;
    CAPTURE(i, stream.restart_interval);
    const auto result = tokenise_one(made.image, random_run(random));
    REQUIRE(result->status == Status::kDone);
    REQUIRE((result->blocks == made.levels));

    TokeniseImage rows = some_rows(made.image.header, random);
    rows.segments = made.image.segments;
    rows.restart_interval = made.image.restart_interval;
    const auto some = tokenise_one(rows, random_run(random));
    REQUIRE(some->status == Status::kDone);
    REQUIRE((some->blocks == wanted_of(made.levels, rows)));
    ++taken;
  }
  REQUIRE(taken > 50);
}

TEST_CASE("a restart interval that ends too early or too late is not decoded here", "[cuda]") {
  std::mt19937 random(75);
  int taken = 0;
  for (int i = 0; i < rounds(60); ++i) {
    // An MCU of six blocks does not fit into a byte's padding.
    JpegStream stream =
        draw_unbroken({.width = 90, .height = 60, .h = 2, .v = 2, .components = 3, .density = 300}, random);
    stream.restart_interval = 2 + below(random, 6);
    Restarted made = restarted(stream);
    if (made.levels.empty() || made.image.segments.size() < 2) continue;
    Segment& segment = made.image.segments[random() % (made.image.segments.size() - 1)];
    segment.mcus = segment.mcus - 1;
    CAPTURE(i);
    REQUIRE(tokenise_one(made.image, random_run(random))->status == Status::kNotHere);
    segment.mcus = segment.mcus + 2;
    REQUIRE(tokenise_one(made.image, random_run(random))->status == Status::kNotHere);
    ++taken;
  }
  REQUIRE(taken > rounds(20));
}

TEST_CASE("restart intervals without segments are not decoded here", "[cuda]") {
  std::mt19937 random(76);
  JpegStream stream = draw_unbroken({.width = 90, .height = 60, .h = 1, .v = 1}, random);
  stream.restart_interval = 2;
  Restarted made = restarted(stream);
  made.image.segments.clear();
  REQUIRE(tokenise_one(made.image, {})->status == Status::kNotHere);
}

TEST_CASE("segments that say anything at all are decoded within bounds", "[cuda]") {
  std::mt19937 random(77);
  for (int i = 0; i < rounds(300); ++i) {
    const JpegStream stream = draw_unbroken({.range = JpegDraw::Range::kWild}, random);
    const JpegFile file = write_jpeg(stream);
    const auto header = read_header(file_bytes(file.bytes));
    if (!header) continue;
    TokeniseImage image = some_rows(*header, random);
    for (int k = below(random, 40); k >= 0; --k) {
      const auto wild = [&] { return static_cast<std::uint32_t>(random() >> random() % 32); };
      image.segments.push_back({wild(), wild(), wild(), wild(), {}, {}, wild() % 3});
      if (random() % 2 == 0) image.segments.back().first_bit %= 8 * file.bytes.size();
      if (random() % 2 == 0) image.segments.back().first_mcu %= static_cast<std::uint32_t>(mcu_count(stream));
      if (random() % 2 == 0) image.segments.back().mcus %= 20;
    }
    if (random() % 3 == 0) image.token_capacity = random() % 2000 / 4 * 4;
    tokenise_one(image, random_run(random));
  }
}

}  // namespace millrace::kernels::cuda
