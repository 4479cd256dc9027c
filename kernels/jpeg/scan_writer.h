// Blocks to the bytes of a scan again: Huffman coding with a file's own tables (T.81 F.1.2), restart markers,
// stuffing. For baseline files, whose scan follows from the blocks as encoders write it: runs of 16 zeros only before a
// value, EOB wherever zeros end a block, the first code that a table has for a symbol. What else an encoder chose are
// the bits that fill the last byte of each restart interval; begin_like() takes them from the scan to be written again.
// A scan that somebody wrote in another way comes out otherwise: a caller that needs the same bytes has to compare.
//
// Thread-bound(its owner).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/jpeg/header.h"
#include "kernels/jpeg/seek_index.h"

namespace millrace::kernels::jpeg {

// The bits behind the last code of a restart interval, up to a whole byte. A scan without restarts is one interval.
struct ScanPadding {
  enum class Kind : std::uint8_t { kZeros, kOnes, kListed };
  Kind kind = Kind::kOnes;
  std::vector<std::uint8_t> listed;  // of kListed: the bits of each interval, in the low bits of a byte
  friend bool operator==(const ScanPadding&, const ScanPadding&) = default;
};

// Restart intervals of the scan, at least one.
std::int64_t interval_count(const Header& header);

class ScanWriter {
 public:
  // The scan of `header`'s image goes behind what `out` has. False: a table is none that libjpeg-turbo takes, or there
  // is not a byte of padding for each interval. `out` is borrowed until finish().
  bool begin(const Header& header, const ScanPadding& padding, std::vector<std::uint8_t>& out);
  // The same, with the padding of `scan`, which finish() then knows. Bytes that are not there are taken for ones.
  bool begin_like(const Header& header, FileBytes scan_untrusted, std::vector<std::uint8_t>& out);

  // The next blocks in the scan's order: zig-zag inside, DC as level. False: a table has no code for what they need, or
  // the scan has no such block; writing ends.
  bool take(const std::int16_t* blocks, std::int64_t count);

  // False: take() said so, or blocks are missing; `out` means nothing then. No marker follows the last interval.
  bool finish();
  // After finish().
  const ScanPadding& padding() const { return padding_; }

 private:
  struct Code {
    std::uint16_t bits = 0;
    std::uint8_t length = 0;  // 0: none
  };
  using Codes = std::array<Code, 256>;

  bool start(const Header& header, std::vector<std::uint8_t>& out);
  static bool build(const HuffmanSpec& spec, Codes& codes, bool is_dc);
  bool write_block(const std::int16_t* block, std::size_t component);
  bool put_symbol(const Codes& codes, std::uint32_t symbol, std::uint32_t value, int size);
  void put(std::uint32_t bits, int count);
  void put_byte(std::uint8_t byte);
  void make_room();
  void end_interval();
  std::uint8_t fill_of(int bits) const;
  void settle_padding();

  std::array<Codes, kMostTables> dc_{}, ac_{};
  std::array<std::uint8_t, kMostBlocks> component_of_{};  // of each block of an MCU
  std::array<std::uint8_t, 3> dc_table_{}, ac_table_{};
  std::array<std::int16_t, 3> levels_{};  // DC predictors
  SeekGrid grid_;
  std::int64_t mcu_ = 0, interval_ = 0;  // complete ones
  std::int64_t restart_interval_ = 0;
  int block_ = 0;  // in its MCU
  bool good_ = false;

  ScanPadding padding_;
  bool like_ = false, all_ones_ = true, all_zeros_ = true;
  FileBytes original_;  // of begin_like()

  std::vector<std::uint8_t>* out_ = nullptr;
  std::size_t begin_ = 0, size_ = 0;  // of `out`: where the scan begins; bytes that count
  std::uint64_t bits_ = 0;            // from the top
  int held_ = 0;                      // bits, below 8 between symbols' bytes
};

}  // namespace millrace::kernels::jpeg
