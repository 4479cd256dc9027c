// Scans written from their blocks, beside the scans that the blocks came from.
#include <algorithm>
#include <cstring>

#include "kernels/jpeg/scan_writer.h"
#include "tests/support/jpeg/random_jpeg.h"
#include "tests/support/pictures/test_data.h"
#include "tests/support/rounds.h"
#include "tests/unit/kernels/jpeg/jpeg_rig.h"

namespace millrace {
namespace {

using kernels::jpeg::Header;
using kernels::jpeg::interval_count;
using kernels::jpeg::ScanPadding;
using kernels::jpeg::ScanWriter;

// DC as level, which decoders hand over as difference.
std::vector<JpegBlock> with_levels(const Header& header, std::vector<JpegBlock> blocks) {
  const std::size_t luma = header.components == 1 ? 1 : std::size_t{header.component[0].h} * header.component[0].v;
  const std::size_t in_mcu = header.components == 1 ? 1 : luma + 2;
  const std::size_t in_interval = static_cast<std::size_t>(header.restart_interval) * in_mcu;
  std::array<std::int16_t, 3> levels{};
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (in_interval != 0 && i % in_interval == 0) levels = {};
    const std::size_t at = i % in_mcu, component = at < luma ? 0 : at - luma + 1;
    levels[component] = static_cast<std::int16_t>(levels[component] + blocks[i][0]);
    blocks[i][0] = levels[component];
  }
  return blocks;
}

struct Decoded {
  Header header;
  std::vector<JpegBlock> blocks;
};

// Its header speaks of `file`, which has to stay.
std::optional<Decoded> decoded(ByteView file) {
  const auto header = kernels::jpeg::read_header(file_bytes(file));
  auto blocks = decode_blocks(*decoders().front(), file);
  if (!header || !blocks) return std::nullopt;
  return Decoded{*header, with_levels(*header, *std::move(blocks))};
}

std::optional<Decoded> decoded(std::vector<std::byte>&& gone_at_once) = delete;

bool take_all(ScanWriter& writer, const std::vector<JpegBlock>& blocks) {
  return writer.take(blocks.front().data(), static_cast<std::int64_t>(blocks.size()));
}

// Whether `written` is what the file has in front of what follows its scan.
bool begins_scan(const std::vector<std::uint8_t>& written, const Header& header) {
  return written.size() < header.scan.size() && std::equal(written.begin(), written.end(), header.scan.begin()) &&
         header.scan[written.size()] == 0xFF && header.scan[written.size() + 1] != 0;
}

// Once with the file's padding looked up, once with it given.
bool comes_back(const Decoded& file) {
  ScanWriter writer;
  std::vector<std::uint8_t> first, second;
  if (!writer.begin_like(file.header, file.header.scan, first) || !take_all(writer, file.blocks) || !writer.finish())
    return false;
  const ScanPadding padding = writer.padding();
  if (!writer.begin(file.header, padding, second) || !take_all(writer, file.blocks) || !writer.finish()) return false;
  return begins_scan(first, file.header) && first == second;
}

TEST_CASE("a scan written from its blocks is the scan, byte for byte", "[kernels]") {
  std::mt19937 random(1);
  int checked = 0;
  for (int i = 0; i < rounds(400); ++i) {
    const JpegStream stream = draw_jpeg({.range = i % 2 == 0 ? JpegDraw::Range::kWild : JpegDraw::Range::kOrdinary,
                                         .restart_interval = i % 3 == 0 ? 1 + i % 7 : -1},
                                        random);
    if (!is_plain(stream) || stream.style.needless_runs || stream.style.odd_ends) continue;
    const JpegFile file = write_jpeg(stream);
    const auto blocks = decoded(file.bytes);
    CAPTURE(i, stream.restart_interval, stream.style.padding);
    if (!blocks) continue;  // grey with restarts and tall MCUs is not ours
    REQUIRE(comes_back(*blocks));
    ++checked;
  }
  REQUIRE(checked > rounds(400) / 5);
}

TEST_CASE("photographs' scans come back, with the padding that they had", "[kernels]") {
  const auto folder = test_data("photos");
  if (!folder) return;
  int checked = 0;
  for (const auto& [name, file] : files_in(*folder)) {
    const auto blocks = decoded(file);
    if (!blocks) continue;
    CAPTURE(name);
    REQUIRE(comes_back(*blocks));
    ++checked;
  }
  REQUIRE(checked > 100);
}

// A grey picture of `count` blocks in a row, each of `dc` and one AC value.
JpegStream row_of(int count, int restart_interval, std::mt19937& random) {
  return draw_jpeg({.width = 8 * count, .height = 8, .components = 1, .restart_interval = restart_interval}, random);
}

TEST_CASE("padding bits are told: zeros, ones, or each interval's", "[kernels]") {
  std::mt19937 random(2);
  JpegStream stream = row_of(40, 1, random);
  stream.style = {};
  stream.style.padding = 1;
  const JpegFile ones = write_jpeg(stream);
  stream.style.padding = 0;
  const JpegFile zeros = write_jpeg(stream);
  // The first interval of the one, the others of the other: each ends before its marker.
  const auto first_end = [](const JpegFile& file) {
    for (std::size_t i = file.scan;; ++i) {
      if (file.bytes[i] == std::byte{0xFF} && file.bytes[i + 1] == std::byte{0xD0})
        return static_cast<std::ptrdiff_t>(i);
    }
  };
  std::vector<std::byte> mixed(zeros.bytes.begin(), zeros.bytes.begin() + first_end(zeros));
  mixed.insert(mixed.end(), ones.bytes.begin() + first_end(ones), ones.bytes.end());
  const auto padding_of = [](const std::vector<std::byte>& bytes) {
    const auto file = decoded(bytes);
    REQUIRE(file);
    REQUIRE(comes_back(*file));
    ScanWriter writer;
    std::vector<std::uint8_t> out;
    REQUIRE(
        (writer.begin_like(file->header, file->header.scan, out) && take_all(writer, file->blocks) && writer.finish()));
    return writer.padding();
  };

  REQUIRE(padding_of(ones.bytes) == ScanPadding{ScanPadding::Kind::kOnes, {}});
  REQUIRE(padding_of(zeros.bytes) == ScanPadding{ScanPadding::Kind::kZeros, {}});
  if (mixed != ones.bytes && mixed != zeros.bytes) {
    REQUIRE(padding_of(mixed).kind == ScanPadding::Kind::kListed);
    REQUIRE(padding_of(mixed).listed.size() == 40);
  }
}

TEST_CASE("a scan that an encoder wrote in another way comes out as others write it", "[kernels]") {
  std::mt19937 random(3);
  int different = 0;
  for (int i = 0; i < rounds(60); ++i) {
    const JpegStream stream = draw_jpeg({.density = 30, .restart_interval = 0}, random);
    if (!is_plain(stream) || !stream.style.needless_runs) continue;
    const JpegFile written = write_jpeg(stream);
    const auto file = decoded(written.bytes);
    REQUIRE(file);
    if (comes_back(*file)) continue;
    ++different;
  }
  REQUIRE(different > 0);
}

TEST_CASE("what a table has no code for, and too few or too many blocks, are refused", "[kernels]") {
  std::mt19937 random(4);
  const JpegFile bytes = write_jpeg(row_of(3, 0, random));
  auto file = decoded(bytes.bytes);
  REQUIRE(file);
  ScanWriter writer;
  std::vector<std::uint8_t> out;

  REQUIRE(writer.begin(file->header, {}, out));
  REQUIRE(writer.take(file->blocks[0].data(), 2));
  REQUIRE_FALSE(writer.finish());

  REQUIRE(writer.begin(file->header, {}, out));
  REQUIRE(take_all(writer, file->blocks));
  REQUIRE_FALSE(writer.take(file->blocks[0].data(), 1));
  REQUIRE_FALSE(writer.finish());

  for (const int at : {0, 1, 63}) {
    for (const int value : {-32'768, 32'767}) {
      JpegBlock block{};
      block[static_cast<std::size_t>(at)] = static_cast<std::int16_t>(value);
      REQUIRE(writer.begin(file->header, {}, out));
      const bool taken = writer.take(block.data(), 1);
      if (value == -32'768) REQUIRE_FALSE(taken);
    }
  }
  REQUIRE_FALSE(writer.begin(file->header, {ScanPadding::Kind::kListed, {}}, out));

  file->header.dc[file->header.component[0].dc].reset();
  REQUIRE_FALSE(writer.begin(file->header, {}, out));
}

}  // namespace
}  // namespace millrace
