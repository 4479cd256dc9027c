#include "kernels/jpeg/scan_writer.h"

#include <algorithm>
#include <bit>

#include "kernels/jpeg/canonical_code.h"
#include "kernels/jpeg/restart_intervals.h"

namespace millrace::kernels::jpeg {
namespace {

constexpr int kMostSize = 15;             // bits of a value, as symbols can say it
constexpr std::uint32_t kZeroRun = 0xF0;  // sixteen zeros
constexpr std::uint32_t kEndOfBlock = 0;
// All symbols and values of a block, stuffed, and an interval's end.
constexpr std::size_t kMostBlockBytes = 2 * (kCoefficients * (kMostCodeBits + kMostSize) / 8 + 1) + 16;

int size_of(int value) {
  return std::bit_width(static_cast<unsigned>(value < 0 ? -value : value));
}

// T.81 F.1.2.1.1: negative values less one, their low bits.
std::uint32_t bits_of(int value, int size) {
  return static_cast<std::uint32_t>(value < 0 ? value - 1 : value) & ((1U << size) - 1);
}

}  // namespace

std::int64_t interval_count(const Header& header) {
  const std::int64_t mcus = seek_grid(header).mcus();
  return header.restart_interval == 0 ? 1 : (mcus + header.restart_interval - 1) / header.restart_interval;
}

bool ScanWriter::begin(const Header& header, const ScanPadding& padding, std::vector<std::uint8_t>& out) {
  padding_ = padding;
  like_ = false;
  const bool listed = padding.kind == ScanPadding::Kind::kListed;
  good_ = (!listed || static_cast<std::int64_t>(padding.listed.size()) == interval_count(header)) && start(header, out);
  return good_;
}

bool ScanWriter::begin_like(const Header& header, FileBytes scan_untrusted, std::vector<std::uint8_t>& out) {
  padding_.kind = ScanPadding::Kind::kListed;
  padding_.listed.clear();
  like_ = true;
  original_ = scan_untrusted;
  good_ = start(header, out);
  return good_;
}

bool ScanWriter::start(const Header& header, std::vector<std::uint8_t>& out) {
  grid_ = seek_grid(header);
  std::size_t at = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(header.components); ++i) {
    const Component& component = header.component[i];
    dc_table_[i] = component.dc;
    ac_table_[i] = component.ac;
    const auto& dc = header.dc[component.dc];
    const auto& ac = header.ac[component.ac];
    if (!dc || !ac || !build(*dc, dc_[component.dc], true) || !build(*ac, ac_[component.ac], false)) return false;
    const std::size_t blocks = header.components == 1 ? 1 : std::size_t{component.h} * component.v;
    for (std::size_t block = 0; block < blocks && at < kMostBlocks; ++block)
      component_of_[at++] = static_cast<std::uint8_t>(i);
  }
  levels_ = {};
  mcu_ = interval_ = 0;
  block_ = 0;
  restart_interval_ = header.restart_interval;
  out_ = &out;
  begin_ = size_ = out.size();
  bits_ = 0;
  held_ = 0;
  all_ones_ = all_zeros_ = true;
  return true;
}

// T.81 annex C. Of several codes for a symbol the first counts.
bool ScanWriter::build(const HuffmanSpec& spec, Codes& codes, bool is_dc) {
  CanonicalCode checked;
  if (!make_code(spec, is_dc ? TableKind::kDc : TableKind::kAc, checked)) return false;
  codes = {};
  std::uint32_t next = 0;
  std::size_t at = 0;
  for (std::uint8_t length = 1; length <= kMostCodeBits; ++length, next <<= 1U) {
    for (int i = 0; i < spec.counts[length - 1U]; ++i, ++next) {
      Code& code = codes[spec.symbols[at++]];
      if (code.length == 0) code = {static_cast<std::uint16_t>(next), length};
    }
  }
  return true;
}

bool ScanWriter::take(const std::int16_t* blocks, std::int64_t count) {
  for (; good_ && count > 0; --count, blocks += kCoefficients) {
    if (mcu_ == grid_.mcus()) {
      good_ = false;
      break;
    }
    make_room();
    if (block_ == 0 && restart_interval_ != 0 && mcu_ != 0 && mcu_ % restart_interval_ == 0) {
      end_interval();
      put_byte(0xFF);
      put_byte(static_cast<std::uint8_t>(restart_before(interval_)));
      levels_ = {};
    }
    good_ = write_block(blocks, component_of_[static_cast<std::size_t>(block_)]);
    if (++block_ < grid_.blocks_in_mcu) continue;
    block_ = 0;
    ++mcu_;
  }
  return good_;
}

bool ScanWriter::finish() {
  if (good_ && (mcu_ != grid_.mcus() || block_ != 0)) good_ = false;
  if (good_) {
    make_room();
    end_interval();
    settle_padding();
  }
  out_->resize(size_);
  return good_;
}

bool ScanWriter::write_block(const std::int16_t* block, std::size_t component) {
  const Codes& dc = dc_[dc_table_[component]];
  const Codes& ac = ac_[ac_table_[component]];
  const auto difference = static_cast<std::int16_t>(block[0] - levels_[component]);  // modulo 65,536, as it was added
  levels_[component] = block[0];
  const int dc_size = size_of(difference);
  if (!put_symbol(dc, static_cast<std::uint32_t>(dc_size), bits_of(difference, dc_size), dc_size)) return false;
  std::uint32_t run = 0;
  for (int at = 1; at < kCoefficients; ++at) {
    const int value = block[at];
    if (value == 0) {
      ++run;
      continue;
    }
    for (; run > 15; run -= 16) {
      if (!put_symbol(ac, kZeroRun, 0, 0)) return false;
    }
    const int size = size_of(value);
    if (size > kMostSize) return false;
    if (!put_symbol(ac, run << 4U | static_cast<std::uint32_t>(size), bits_of(value, size), size)) return false;
    run = 0;
  }
  return run == 0 || put_symbol(ac, kEndOfBlock, 0, 0);
}

bool ScanWriter::put_symbol(const Codes& codes, std::uint32_t symbol, std::uint32_t value, int size) {
  const Code code = codes[symbol];
  if (code.length == 0 || size > kMostSize) return false;
  put(std::uint32_t{code.bits} << static_cast<unsigned>(size) | value, code.length + size);
  return true;
}

// REQUIRES: 1 <= count <= 31, and room.
void ScanWriter::put(std::uint32_t bits, int count) {
  held_ += count;
  bits_ |= std::uint64_t{bits} << static_cast<unsigned>(64 - held_);
  for (; held_ >= 8; held_ -= 8, bits_ <<= 8U) {
    const auto byte = static_cast<std::uint8_t>(bits_ >> 56U);
    put_byte(byte);
    if (byte == 0xFF) put_byte(0);
  }
}

void ScanWriter::put_byte(std::uint8_t byte) {
  (*out_)[size_++] = byte;
}

void ScanWriter::make_room() {
  if (out_->size() - size_ < kMostBlockBytes) out_->resize(std::max<std::size_t>(2 * out_->size(), 65'536));
}

// Fills the last byte.
void ScanWriter::end_interval() {
  if (held_ > 0) {
    const int missing = 8 - held_;
    const std::uint8_t fill = fill_of(missing);
    if (like_) padding_.listed.push_back(fill);
    all_ones_ = all_ones_ && fill == (1U << static_cast<unsigned>(missing)) - 1;
    all_zeros_ = all_zeros_ && fill == 0;
    put(fill, missing);
  } else if (like_) {
    padding_.listed.push_back(0);
  }
  ++interval_;
}

// Says in fewer words what all encoders that care do: the same bit everywhere.
void ScanWriter::settle_padding() {
  if (!like_ || (!all_ones_ && !all_zeros_)) return;
  padding_.kind = all_ones_ ? ScanPadding::Kind::kOnes : ScanPadding::Kind::kZeros;
  padding_.listed.clear();
}

std::uint8_t ScanWriter::fill_of(int bits) const {
  const auto ones = static_cast<std::uint8_t>((1U << static_cast<unsigned>(bits)) - 1);
  if (like_) {
    const std::size_t at = size_ - begin_;
    return at < original_.size() ? original_[at] & ones : ones;
  }
  if (padding_.kind == ScanPadding::Kind::kZeros) return 0;
  if (padding_.kind == ScanPadding::Kind::kOnes) return ones;
  return padding_.listed[static_cast<std::size_t>(interval_)] & ones;
}

}  // namespace millrace::kernels::jpeg
