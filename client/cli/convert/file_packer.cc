#include "client/cli/convert/file_packer.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace millrace::cli {
namespace {

using kernels::jpeg::Header;

// Blocks to the packed image and to the scan that is to be the file's, in one pass while they are in the caches.
class BothWays final : public kernels::jpeg::BlockConsumer {
 public:
  BothWays(const Header& header, kernels::packed::Encoder& encoder, kernels::jpeg::ScanWriter& writer)
      : grid_(kernels::packed::grid_of(header)),
        in_interval_(std::int64_t{header.restart_interval} * grid_.blocks_in_mcu()),
        encoder_(encoder),
        writer_(writer) {}

  bool take(std::int16_t* blocks, std::int64_t count) override {
    add_levels(blocks, count);
    held_ = held_ && encoder_.take(blocks, count);
    written_ = written_ && writer_.take(blocks, count);
    std::memset(blocks, 0, static_cast<std::size_t>(count) * kernels::jpeg::kCoefficients * sizeof *blocks);
    return held_ && written_;
  }
  bool held() const { return held_; }
  bool written() const { return written_; }

 private:
  // DC comes as difference.
  void add_levels(std::int16_t* blocks, std::int64_t count) {
    const int luma = grid_.components == 1 ? 1 : grid_.h * grid_.v, in_mcu = grid_.blocks_in_mcu();
    for (std::int64_t i = 0; i < count; ++i, ++block_, blocks += kernels::jpeg::kCoefficients) {
      if (in_interval_ != 0 && block_ % in_interval_ == 0) levels_ = {};
      const auto at = static_cast<int>(block_ % in_mcu);
      std::int16_t& level = levels_[static_cast<std::size_t>(at < luma ? 0 : at - luma + 1)];
      level = static_cast<std::int16_t>(level + blocks[0]);
      blocks[0] = level;
    }
  }

  const kernels::packed::Grid grid_;
  const std::int64_t in_interval_;  // blocks; 0: no restarts
  kernels::packed::Encoder& encoder_;
  kernels::jpeg::ScanWriter& writer_;
  std::int64_t block_ = 0;
  std::array<std::int16_t, 3> levels_{};
  bool held_ = true, written_ = true;
};

// T.81 table B.1: whether the first frame of a JPEG file is none of the sequential kinds with Huffman codes, or its
// first scan has not all components.
bool has_many_scans(FileBytes jpeg) {
  constexpr int kSof0 = 0xC0, kSof1 = 0xC1, kSof2 = 0xC2, kSos = 0xDA;
  int components = 0;
  for (std::size_t at = 2; at + 4 < jpeg.size() && jpeg[at] == 0xFF;) {
    const int marker = jpeg[at + 1];
    if (marker == 0xFF) {
      ++at;
      continue;
    }
    if (marker == kSof2) return true;
    if ((marker == kSof0 || marker == kSof1) && at + 9 < jpeg.size()) components = jpeg[at + 9];
    if (marker == kSos) return jpeg[at + 4] < components;
    at += 2U + (std::size_t{jpeg[at + 2]} << 8U | jpeg[at + 3]);
  }
  return false;
}

}  // namespace

bool is_jpeg(FileBytes file) {
  return file.size() >= 3 && file[0] == 0xFF && file[1] == 0xD8 && file[2] == 0xFF;
}

WhyCopied FilePacker::pack(FileBytes jpeg_untrusted, std::string_view ending, std::vector<std::uint8_t>& packed) {
  if (!is_jpeg(jpeg_untrusted)) return WhyCopied::kOtherFormat;
  const auto header = kernels::jpeg::read_header(jpeg_untrusted);
  if (!header) return has_many_scans(jpeg_untrusted) ? WhyCopied::kProgressive : WhyCopied::kNotOurs;
  if (const WhyCopied why = read_blocks(*header, image_, scan_); why != WhyCopied::kNothing) return why;
  const std::size_t scan_at = jpeg_untrusted.size() - header->scan.size();
  if (scan_.size() > header->scan.size() || !std::equal(scan_.begin(), scan_.end(), header->scan.begin()))
    return WhyCopied::kOwnWay;
  const kernels::jpeg::ScanPadding& padding = writer_.padding();
  const kernels::mrp::PackedFile file{.way_back = kernels::mrp::WayBack::kYes,
                                      .front = jpeg_untrusted.first(scan_at),
                                      .padding = padding.kind,
                                      .listed = padding.listed,
                                      .end = header->scan.subspan(scan_.size()),
                                      .image = image_,
                                      .ending = std::string(ending),
                                      .jpeg_bytes = jpeg_untrusted.size(),
                                      .jpeg_hash = kernels::mrp::hash_of(jpeg_untrusted)};
  if (!write_packed_file(file, packed)) return WhyCopied::kOwnWay;
  const bool same = restore(packed, restored_).empty() && std::ranges::equal(restored_, jpeg_untrusted);
  return same ? WhyCopied::kNothing : WhyCopied::kOwnWay;
}

WhyCopied FilePacker::read_blocks(const Header& header, std::vector<std::uint8_t>& image,
                                  std::vector<std::uint8_t>& scan) {
  scan.clear();
  if (!encoder_.begin(header) || !writer_.begin_like(header, header.scan, scan)) return WhyCopied::kNotOurs;
  BothWays both(header, encoder_, writer_);
  const std::int64_t blocks = kernels::packed::grid_of(header).blocks();
  const auto outcome = decoder_.decode_blocks(header, blocks, blocks, both);
  if (!both.held()) return WhyCopied::kTooLarge;
  if (!both.written()) return WhyCopied::kOwnWay;
  if (outcome != kernels::jpeg::Outcome::kDecoded) return WhyCopied::kNotOurs;
  if (!encoder_.finish(image)) return WhyCopied::kTooLarge;
  return writer_.finish() ? WhyCopied::kNothing : WhyCopied::kOwnWay;
}

std::string FilePacker::restore(std::vector<std::uint8_t>& packed_untrusted, std::vector<std::uint8_t>& jpeg) {
  const std::size_t size = packed_untrusted.size();
  packed_untrusted.resize(size + kernels::packed::kPadding);
  std::string wrong = restorer_.restore(FileBytes(packed_untrusted).first(size), jpeg);
  packed_untrusted.resize(size);
  return wrong;
}

}  // namespace millrace::cli
