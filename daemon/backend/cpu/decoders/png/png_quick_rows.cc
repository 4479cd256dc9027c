#include "daemon/backend/cpu/decoders/png/png_quick_rows.h"

#include <libdeflate.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace millrace {

using kernels::png::Inflater;
using kernels::png::InflateStatus;

PngQuickRows::PngQuickRows(PngChunks& chunks, const Rows& rows, kernels::Target target,
                           const kernels::Deadline& deadline)
    : chunks_(chunks),
      deadline_(deadline),
      inflater_(target),
      row_bytes_(rows.bytes),
      left_(rows.bytes * rows.count),
      room_(Inflater::kHistory + std::max(kInflated, rows.bytes)),
      window_(new (std::nothrow) std::uint8_t[room_ + kSlack]) {
  std::memset(fed_bytes_, 0, kKept);
  in_.next = in_.end = fed_bytes_ + kKept;
  row_ = out_.begin = out_.next = window_.get();
}

std::unique_ptr<PngQuickRows> PngQuickRows::create(PngChunks& chunks, const Rows& rows, kernels::Target target,
                                                   const kernels::Deadline& deadline) {
  std::unique_ptr<PngQuickRows> made(new (std::nothrow) PngQuickRows(chunks, rows, target, deadline));
  if (!made || !made->window_) return nullptr;
  return made;
}

const std::uint8_t* PngQuickRows::next() {
  while (static_cast<std::size_t>(out_.next - row_) < row_bytes_) {
    if (is_over_ || !inflate_more()) return nullptr;
  }
  const std::uint8_t* const row = row_;
  row_ += row_bytes_;
  return row;
}

std::uint64_t PngQuickRows::finish() {
  while (!is_over_) {
    if (!inflate_more()) return 0;
  }
  constexpr std::size_t kAdlerBytes = 4;
  if (left_ > 0 || static_cast<std::size_t>(in_.end - in_.next) < kAdlerBytes) return 0;
  std::uint32_t stored = 0;
  for (std::size_t i = 0; i < kAdlerBytes; ++i) stored = stored << 8 | in_.next[i];
  if (stored != checksum_) return 0;
  return fed_ - static_cast<std::uint64_t>(in_.end - in_.next) + kAdlerBytes;
}

// The bytes that are not taken to the front, and more behind them.
void PngQuickRows::feed() {
  std::uint8_t* const begin = fed_bytes_ + kKept;
  const auto left = static_cast<std::size_t>(in_.end - in_.next);
  std::memmove(fed_bytes_, in_.next - kKept, kKept + left);
  std::uint8_t* end = begin + left;
  const std::uint8_t* const full = begin + kFed;
  while (end < full) {
    if (piece_.empty()) piece_ = chunks_.next_image_data();
    if (piece_.empty()) break;
    const std::size_t count = std::min(piece_.size(), static_cast<std::size_t>(full - end));
    std::memcpy(end, piece_.data(), count);
    piece_ = piece_.subspan(count);
    end += count;
    fed_ += count;
  }
  in_ = {begin, end, end < full};
  std::memset(end, 0, kernels::png::kInflateInputSlack);
}

// What can still be referred to, and the row that has begun, to the front of the window.
void PngQuickRows::make_room() {
  std::uint8_t* const begin = window_.get();
  if (out_.next < begin + room_) return;
  const std::uint8_t* const kept = std::min<const std::uint8_t*>(row_, out_.next - Inflater::kHistory);
  const std::ptrdiff_t shift = kept - begin;
  std::memmove(begin, kept, static_cast<std::size_t>(out_.next - kept));
  row_ -= shift;
  out_.next -= shift;
}

bool PngQuickRows::inflate_more() {
  is_late_ = deadline_.is_over();
  if (is_late_) return false;
  make_room();
  out_.end = window_.get() + room_;
  const std::uint8_t* const before = out_.next;
  const InflateStatus status = inflater_.run(in_, out_);
  const auto count = static_cast<std::size_t>(out_.next - before);
  if (count > left_) return false;
  left_ -= count;
  checksum_ = libdeflate_adler32(checksum_, before, count);
  if (status == InflateStatus::kHungry) feed();
  is_over_ = status == InflateStatus::kEnd;
  return status != InflateStatus::kOdd;
}

}  // namespace millrace
