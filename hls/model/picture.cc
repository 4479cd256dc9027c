#include "hls/model/picture.h"

#include <array>
#include <cstddef>
#include <cstring>

#include "kernels/jpeg/canonical_code.h"
#include "kernels/jpeg/seek_index.h"
#include "kernels/packed/encoder.h"

namespace millrace::hls::model {
namespace {

using kernels::jpeg::CanonicalCode;
using kernels::jpeg::FileBytes;
using kernels::jpeg::Header;
using kernels::jpeg::kCoefficients;
using kernels::jpeg::kMostCodeBits;

// The bits of entropy-coded data, without its stuffing; zeros from a marker on, which are counted as missing.
class BitReader {
 public:
  explicit BitReader(FileBytes scan) : scan_(scan) {}

  std::uint32_t peek16() {
    while (held_ < kMostCodeBits) take_byte();
    return static_cast<std::uint32_t>(window_ >> (held_ - kMostCodeBits)) & 0xFFFF;
  }
  void skip(int count) {
    held_ -= count;
    used_ += count;
  }
  std::uint32_t take(int count) {
    if (count == 0) return 0;
    const std::uint32_t bits = peek16() >> (kMostCodeBits - count);
    skip(count);
    return bits;
  }
  std::int64_t used() const { return used_; }
  bool overrun() const { return missing_ > held_; }
  // Where the data has been read to; the marker, once the last code is read.
  std::size_t at() const { return at_; }

  // Past the next restart marker. False: there is none where it has to be.
  bool restart() {
    window_ = 0;
    held_ = missing_ = 0;
    while (at_ + 1 < scan_.size() && !(scan_[at_] == 0xFF && scan_[at_ + 1] != 0)) ++at_;
    if (at_ + 1 >= scan_.size() || (scan_[at_ + 1] & 0xF8) != 0xD0) return false;
    at_ += 2;
    return true;
  }

 private:
  void take_byte() {
    std::uint8_t byte = 0;
    const bool ends = at_ >= scan_.size() || (scan_[at_] == 0xFF && (at_ + 1 >= scan_.size() || scan_[at_ + 1] != 0));
    if (ends) {
      missing_ += 8;
    } else {
      byte = scan_[at_];
      at_ += byte == 0xFF ? 2 : 1;
    }
    window_ = window_ << 8 | byte;
    held_ += 8;
  }

  FileBytes scan_;
  std::size_t at_ = 0;
  std::uint64_t window_ = 0;
  int held_ = 0, missing_ = 0;
  std::int64_t used_ = 0;
};

// -1: no code.
int take_symbol(BitReader& reader, const CanonicalCode& code) {
  const std::uint32_t window = reader.peek16();
  int length = 1;
  while (length <= kMostCodeBits && window >= code.limit[static_cast<std::size_t>(length - 1)]) ++length;
  if (length > kMostCodeBits) return -1;
  reader.skip(length);
  const std::int64_t at = std::int64_t{code.offset[static_cast<std::size_t>(length)]} +
                          static_cast<std::int64_t>(window >> (kMostCodeBits - length));
  return at < 0 || at > 255 ? -1 : code.symbols[static_cast<std::size_t>(at)];
}

int take_value(BitReader& reader, int size) {
  const int bits = static_cast<int>(reader.take(size));
  return size > 0 && bits < 1 << (size - 1) ? bits - (1 << size) + 1 : bits;
}

struct Counts {
  int symbols = 0, values = 0;
};

// `block`: zeros on entry, zig-zag on return, with the DC difference. False: damaged.
bool take_block(BitReader& reader, const CanonicalCode& dc, const CanonicalCode& ac, std::int16_t* block,
                Counts& counts) {
  const int dc_size = take_symbol(reader, dc);
  ++counts.symbols;
  if (dc_size < 0 || dc_size > 15) return false;
  block[0] = static_cast<std::int16_t>(take_value(reader, dc_size));
  for (int k = 1; k < kCoefficients; ++k) {
    const int symbol = take_symbol(reader, ac);
    ++counts.symbols;
    if (symbol < 0) return false;
    const int run = symbol >> 4, size = symbol & 15;
    if (size == 0 && run != 15) break;
    k += run;
    if (k >= kCoefficients) return false;
    if (size == 0) continue;
    block[k] = static_cast<std::int16_t>(take_value(reader, size));
    ++counts.values;
  }
  return true;
}

struct Codes {
  std::array<CanonicalCode, 3> dc, ac;  // a component each
};

bool make_codes(const Header& header, Codes& codes, Picture& picture) {
  for (std::size_t c = 0; c < static_cast<std::size_t>(header.components); ++c) {
    const auto& dc = header.dc[header.component[c].dc];
    const auto& ac = header.ac[header.component[c].ac];
    if (!dc || !ac || !make_code(*dc, kernels::jpeg::TableKind::kDc, codes.dc[c]) ||
        !make_code(*ac, kernels::jpeg::TableKind::kAc, codes.ac[c]))
      return false;
    if (c > 1) continue;  // files have two sets
    for (std::size_t i = 0; i < 16; ++i) picture.table_symbols += dc->counts[i] + ac->counts[i];
  }
  return true;
}

using Blocks = std::array<std::int16_t, static_cast<std::size_t>(kCoefficients* kernels::jpeg::kMostBlocks)>;

bool take_mcu(BitReader& reader, const Codes& codes, const Picture& picture, std::array<int, 3>& levels, Blocks& blocks,
              McuSymbols& mcu) {
  const std::int64_t before = reader.used();
  blocks = {};
  const int luma = picture.blocks_in_mcu == 1 ? 1 : picture.blocks_in_mcu - 2;
  for (int i = 0; i < picture.blocks_in_mcu; ++i) {
    const auto c = static_cast<std::size_t>(i < luma ? 0 : i - luma + 1);
    std::int16_t* block = blocks.data() + i * kCoefficients;
    Counts counts;
    if (!take_block(reader, codes.dc[c], codes.ac[c], block, counts)) return false;
    levels[c] += block[0];
    block[0] = static_cast<std::int16_t>(levels[c]);
    mcu.symbols = static_cast<std::uint16_t>(mcu.symbols + counts.symbols);
    auto& values = c == 0 ? mcu.luma_values : mcu.chroma_values;
    values = static_cast<std::uint16_t>(values + counts.values);
  }
  mcu.bits = static_cast<std::uint16_t>(reader.used() - before);
  return !reader.overrun();
}

// Where the groups begin: behind the head, the tables and the groups' sizes, at byte 256 or later (kernels/packed).
std::int64_t packed_head(const std::vector<std::uint8_t>& packed) {
  if (packed.size() < 40) return 0;
  std::uint32_t groups = 0;
  std::memcpy(&groups, packed.data() + 16, sizeof groups);
  const std::int64_t head = 40 + std::int64_t{packed[15]} * 128 + std::int64_t{groups} * 2;
  return head < 256 ? 256 : head;
}

}  // namespace

std::int64_t Picture::symbols() const {
  std::int64_t sum = 0;
  for (const McuSymbols& mcu : mcus) sum += mcu.symbols;
  return sum;
}

std::int64_t Picture::bits() const {
  std::int64_t sum = 0;
  for (const McuSymbols& mcu : mcus) sum += mcu.bits;
  return sum;
}

std::optional<Picture> read_picture(FileBytes file) {
  const auto header = kernels::jpeg::read_header(file);
  if (!header) return std::nullopt;
  Picture picture;
  Codes codes;
  if (!make_codes(*header, codes, picture)) return std::nullopt;
  const kernels::jpeg::SeekGrid grid = seek_grid(*header);
  picture.width = static_cast<int>(header->size.width);
  picture.height = static_cast<int>(header->size.height);
  picture.h = grid.components == 1 ? 1 : header->component[0].h;
  picture.v = grid.components == 1 ? 1 : header->component[0].v;
  picture.columns = grid.columns;
  picture.rows = grid.rows;
  picture.blocks_in_mcu = grid.blocks_in_mcu;
  picture.file_bytes = static_cast<std::int64_t>(file.size());
  picture.mcus.resize(static_cast<std::size_t>(grid.mcus()));
  kernels::packed::Encoder encoder;
  bool packs = encoder.begin(*header);
  BitReader reader(header->scan);
  std::array<int, 3> levels{};
  Blocks blocks;
  for (std::size_t i = 0; i < picture.mcus.size(); ++i) {
    if (header->restart_interval > 0 && i > 0 && i % static_cast<std::size_t>(header->restart_interval) == 0) {
      if (!reader.restart()) return std::nullopt;
      levels = {};
    }
    if (!take_mcu(reader, codes, picture, levels, blocks, picture.mcus[i])) return std::nullopt;
    packs = packs && encoder.take(blocks.data(), picture.blocks_in_mcu);
  }
  picture.scan_bytes = static_cast<std::int64_t>(reader.at());
  std::vector<std::uint8_t> packed;
  if (packs && encoder.finish(packed)) {
    picture.packed_bytes = static_cast<std::int64_t>(packed.size());
    picture.packed_head = packed_head(packed);
  }
  return picture;
}

}  // namespace millrace::hls::model
