#include "hls/decoder/jpeg/scan.h"

namespace millrace {
namespace hls {

bool SourceLoader::step(const ReadPort& encoded, BurstFifo& bursts) {
  bool moved = false;
  while (next_ < end_ && !bursts.full()) {
#pragma HLS PIPELINE II = 1
    bursts.write(encoded.read(next_++));
    moved = true;
  }
  return moved;
}

bool ScanUnstuffer::next_word(BurstFifo& bursts) {
  if (bursts.empty()) return false;
  word_ = bursts.read();
  has_word_ = true;
  return true;
}

// Four bytes at once, where none of them is 0xFF and all lie in the word.
bool ScanUnstuffer::take_four() {
  if (after_ff_ || left_ < 4 || at_ > kBurstBytes - 4) return false;
  const std::uint32_t low = at_ % 8 * 8;
  std::uint64_t bytes = word_.part[at_ / 8] >> low;
  if (low > 32) bytes |= word_.part[at_ / 8 + 1] << (64 - low);
  const std::uint32_t four = static_cast<std::uint32_t>(bytes);
  if (((~four - 0x01010101U) & four & 0x80808080U) != 0) return false;
  const std::uint32_t first_on_top = four << 24 | (four & 0xff00) << 8 | (four >> 8 & 0xff00) | four >> 24;
  held_ |= std::uint64_t{first_on_top} << (32 - 8 * held_bytes_);
  held_bytes_ += 4;
  at_ += 4;
  left_ -= 4;
  return true;
}

void ScanUnstuffer::take_byte() {
  const std::uint8_t byte = byte_of(word_, at_);
  ++at_;
  --left_;
  if (after_ff_ && byte != 0) {
    meets_marker_ = true;
    marker_ = byte;
  } else if (after_ff_ || byte != 0xff) {
    held_ |= std::uint64_t{after_ff_ ? std::uint8_t{0xff} : byte} << (56 - 8 * held_bytes_);
    ++held_bytes_;
  }
  after_ff_ = byte == 0xff && !after_ff_;
}

// A full piece; before a marker or the end, what there is, and then that. False: nothing to write.
bool ScanUnstuffer::flush(PieceFifo& pieces) {
  if (held_bytes_ >= 4 || (held_bytes_ > 0 && (meets_marker_ || left_ == 0))) {
    const std::uint32_t bytes = held_bytes_ < 4 ? held_bytes_ : 4;
    pieces.write({static_cast<std::uint32_t>(held_ >> 32), static_cast<std::uint8_t>(bytes), 0});
    held_ <<= 32;
    held_bytes_ -= bytes;
    return true;
  }
  if (!meets_marker_ && left_ > 0) return false;
  const std::uint8_t marker = meets_marker_ ? marker_ : std::uint8_t{0};
  pieces.write({0, 0, marker});
  meets_marker_ = false;
  ends_ = !is_restart(marker);
  return true;
}

bool ScanUnstuffer::step(BurstFifo& bursts, PieceFifo& pieces) {
  bool moved = false;
  while (!ends_ && !pieces.full()) {
#pragma HLS PIPELINE II = 1
    if (flush(pieces)) {
      moved = true;
      continue;
    }
    if (has_word_ && at_ == kBurstBytes) {
      has_word_ = false;
      at_ = 0;
    }
    if (!has_word_ && !next_word(bursts)) return moved;
    if (!take_four()) take_byte();
    moved = true;
  }
  return moved;
}

}  // namespace hls
}  // namespace millrace
