#include "kernels/cpu/jpeg/scan.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace millrace::kernels::jpeg {
namespace {

constexpr int kWindow = 64;                          // chunks between two deliveries
constexpr std::int64_t kMostInWindow = 2 * kWindow;  // blocks' ends
constexpr int kFewestChunks = 4;                     // near the end of the data
constexpr std::int64_t kCapacity = 4096;             // blocks that a stream keeps: 512 KiB
constexpr std::size_t kMemory = (kCapacity + kMostInWindow + 3) * kBlockBytes;
constexpr std::int64_t kWorthwhile = 6000 * 8;               // bits: below, one stream
constexpr std::int64_t kMostAhead = std::int64_t{32} << 13;  // bits between the streams: 32 KiB
// Some 55 blocks. An entry of an index holds no more than 255 MCUs, and a window up to 96 blocks.
constexpr int kWindowsPerNote = 4, kWindowsPerGreyNote = 2;
constexpr int kMostSteps = 3000;  // blocks until streams are said not to meet
constexpr int kLookUpsInWord = 3;
static_assert(kLookUpsInWord * kMostEntryBits <= 57);

std::uint64_t peek(const std::uint8_t* data, std::int64_t bit) {
  std::uint64_t word;
  std::memcpy(&word, data + (bit >> 3), sizeof word);
  return __builtin_bswap64(word) << (bit & 7);
}

struct Code {
  int length;  // 17: impossible
  int symbol;
};

Code look_up(const CanonicalCode& code, std::uint64_t bits) {
  const auto top = static_cast<std::uint32_t>(bits >> 48);
  int length = 1;
  for (const std::uint32_t limit : code.limit) length += top >= limit;
  if (length > 16) return {17, 0};
  const int at = code.offset[static_cast<std::size_t>(length)] + static_cast<int>(top >> (16 - length));
  return {length, code.symbols[static_cast<std::size_t>(at)]};
}

}  // namespace

ScanEnd ScanDecoder::decode(const ScanData& scan, BlockConsumer& consumer) {
  scan_ = scan;
  consumer_ = &consumer;
  end_bit_ = static_cast<std::int64_t>(scan.size) * 8;
  if (!prepare(*sure_) || !prepare(*guess_)) return ScanEnd::kOdd;
  start(*sure_, scan.first_bit, scan.first, false);
  sure_from_ = scan.first;
  ScanEnd end = ScanEnd::kDone;
  while (end == ScanEnd::kDone && sure_->index < scan_.blocks) end = speculate();
  clear(*sure_);
  clear(*guess_);
  if (end == ScanEnd::kDone && !ends_inside_data()) return ScanEnd::kOdd;
  return end == ScanEnd::kDone && scan_.recording != nullptr && !note_end() ? ScanEnd::kOdd : end;
}

ScanEnd ScanDecoder::decode_alone(const ScanData& scan, BlockConsumer& consumer) {
  ScanData alone = scan;
  alone.expected = 0;
  return decode(alone, consumer);
}

bool ScanDecoder::prepare(Stream& stream) {
  stream.cursor = {};
  if (scan_.recording != nullptr) stream.notes.resize(kMemory / kBlockBytes);
  return stream.memory.reserve(kMemory) != nullptr;
}

void ScanDecoder::start(Stream& stream, std::int64_t bit, std::int64_t index, bool may_end) {
  stream.index = index;
  stream.may_end = may_end;
  stream.before_last_run = {};
  stream.stands.clear();
  stream.cursor = cursor_at(scan_.data, bit, scan_.mcu.front(), stream.base());
  stream.cursor.notes = stream.notes.data();
}

// All blocks zero again, as the decoder needs them.
void ScanDecoder::clear(Stream& stream) {
  if (stream.cursor.last == 0) return;
  std::memset(stream.base(), 0, static_cast<std::size_t>(stream.extent()));
  stream.cursor.last = 0;
}

int ScanDecoder::chunks_before_end(const Stream& stream) const {
  const std::int64_t bytes = scan_.data + scan_.size - stream.cursor.next;
  return static_cast<int>(std::clamp<std::int64_t>(bytes * 8 / kChunkBits, 0, kWindow));
}

ScanDecoder::Place ScanDecoder::place_of(Stream& stream) const {
  const auto then = reinterpret_cast<std::uintptr_t>(stream.cursor.then);
  std::uintptr_t offset = then - reinterpret_cast<std::uintptr_t>(scan_.mcu.data());
  if (offset >= scan_.mcu.size_bytes()) offset = then - reinterpret_cast<std::uintptr_t>(scan_.recording->exit.data());
  const auto coefficient = static_cast<int>((stream.cursor.last + 1) % kBlockBytes / 2);
  return {position(stream), &scan_.mcu[offset / sizeof(McuBlock)], coefficient, stream.index + stream.complete()};
}

// From where it is in the circle, if it is, to the same place in the exit.
void ScanDecoder::send_through_gate(Stream& stream) const {
  const auto circle = reinterpret_cast<std::uintptr_t>(scan_.mcu.data());
  const auto exit = reinterpret_cast<std::uintptr_t>(scan_.recording->exit.data());
  const auto then = reinterpret_cast<std::uintptr_t>(stream.cursor.then);
  if (then - circle >= scan_.mcu.size_bytes()) return;
  stream.cursor.then = reinterpret_cast<const TableSwitch*>(exit + (then - circle));
}

// Once in so many windows.
bool ScanDecoder::is_gate_due() {
  if (scan_.recording == nullptr) return false;
  if (++windows_ < (scan_.mcu.size() == 1 ? kWindowsPerGreyNote : kWindowsPerNote)) return false;
  windows_ = 0;
  return true;
}

void ScanDecoder::prepare_window(Stream& stream, bool gate) const {
  if (scan_.recording == nullptr) return;
  if (stream.may_end || stream.index + kMostInWindow >= scan_.blocks) stream.stands.push_back(place_of(stream));
  if (!gate) return;
  if (stream.cursor.notes == stream.notes.data() + stream.notes.size()) note_places(stream);
  send_through_gate(stream);
}

void ScanDecoder::run(Stream& stream) {
  prepare_window(stream, is_gate_due());
  const int chunks = chunks_before_end(stream);
  if (chunks < kFewestChunks) stream.before_last_run = place_of(stream);
  kernels_.run_one(stream.cursor, std::max(chunks, kFewestChunks));
}

void ScanDecoder::run_both(Stream& first, Stream& second) {
  const bool gate = is_gate_due();
  prepare_window(first, gate);
  prepare_window(second, gate);
  const int chunks = std::min(chunks_before_end(first), chunks_before_end(second));
  if (chunks < kFewestChunks) {
    first.before_last_run = place_of(first);
    second.before_last_run = place_of(second);
  }
  kernels_.run_two(first.cursor, second.cursor, std::max(chunks, kFewestChunks));
}

// Hands over complete blocks below `end`, without the first `skipped`, and moves the unfinished one to the front.
ScanEnd ScanDecoder::deliver(Stream& stream, std::int64_t skipped, std::int64_t end) {
  if (stream.cursor.bad != 0 && stream.index + stream.bad_block() < scan_.blocks) return ScanEnd::kOdd;
  const std::int64_t count = std::min(stream.complete(), end - stream.index);
  if (count == 0) return ScanEnd::kDone;
  std::memset(stream.base(), 0, static_cast<std::size_t>(skipped * kBlockBytes));
  auto* const blocks = reinterpret_cast<std::int16_t*>(stream.base() + skipped * kBlockBytes);
  if (count > skipped && !consumer_->take(blocks, count - skipped)) return ScanEnd::kStopped;
  drop(stream, count);
  return ScanEnd::kDone;
}

// The gates that the sure stream passed, but for those where it had not found its way.
void ScanDecoder::note_places(Stream& stream) const {
  const std::int64_t first = stream.index * kBlockBytes - static_cast<std::int64_t>(stream.cursor.moved);
  for (const Note* note = stream.notes.data(); note != stream.cursor.notes; ++note) {
    const std::int64_t block = (first + stream.offset_of(note->last + 1)) / kBlockBytes;
    if (block < sure_from_ || block >= scan_.blocks) continue;
    scan_.recording->recorder.add({block, bit_of(note->place, scan_.data)});
  }
  stream.cursor.notes = stream.notes.data();
}

// Forgets the first blocks, which were handed over.
void ScanDecoder::drop(Stream& stream, std::int64_t count) {
  Cursor& cursor = stream.cursor;
  char* const base = stream.base();
  const std::int64_t moved = count * kBlockBytes, kept = stream.extent() - moved;
  std::memmove(base, base + moved, static_cast<std::size_t>(kept));
  const std::int64_t stale = std::max(moved, kept);
  std::memset(base + stale, 0, static_cast<std::size_t>(moved + kept - stale));
  stream.index += count;
  cursor.moved += static_cast<std::uintptr_t>(moved);
  cursor.last -= static_cast<std::uintptr_t>(moved);
  if (cursor.bad != 0) cursor.bad -= static_cast<std::uintptr_t>(moved);
}

ScanEnd ScanDecoder::advance(Stream& stream, std::int64_t end) {
  run(stream);
  const ScanEnd delivered = deliver(stream, 0, end);
  if (delivered != ScanEnd::kDone) return delivered;
  return stream.index < scan_.blocks && position(stream) > end_bit_ ? ScanEnd::kOdd : ScanEnd::kDone;
}

// One round: the sure stream up to where the other began, then the other's blocks; or the rest by one stream.
ScanEnd ScanDecoder::speculate() {
  const std::int64_t here = position(*sure_);
  const std::int64_t left = std::min(static_cast<std::int64_t>(scan_.expected) * 8, end_bit_) - here;
  if (left < kWorthwhile) return advance(*sure_, scan_.blocks);
  const std::int64_t guess = (here + std::min(left / 2, kMostAhead)) & ~std::int64_t{7};
  start(*guess_, guess, 0, left / 2 <= kMostAhead);
  while (sure_->index < scan_.blocks && position(*sure_) < guess) {
    const bool room = guess_->complete() + kMostInWindow <= kCapacity && position(*guess_) < end_bit_;
    if (room)
      run_both(*sure_, *guess_);
    else
      run(*sure_);
    const ScanEnd end = deliver(*sure_, 0, scan_.blocks);
    if (end != ScanEnd::kDone) return end;
  }
  return sure_->index < scan_.blocks ? join(guess) : ScanEnd::kDone;
}

ScanEnd ScanDecoder::join(std::int64_t guess) {
  Place sure = place_of(*sure_), other{guess, scan_.mcu.data(), 0, 0};
  if (!step(sure) || !meet(sure, other)) {
    clear(*guess_);
    return ScanEnd::kDone;
  }
  if (sure.index >= scan_.blocks) {
    clear(*guess_);
    while (sure_->index < scan_.blocks) {
      const ScanEnd end = advance(*sure_, scan_.blocks);
      if (end != ScanEnd::kDone) return end;
    }
    return ScanEnd::kDone;
  }
  while (guess_->complete() < other.index && guess_->cursor.bad == 0) run(*guess_);
  if (guess_->cursor.bad != 0 && guess_->bad_block() < other.index) {  // it lost its way before
    clear(*guess_);
    return ScanEnd::kDone;
  }
  while (sure_->index < sure.index) {
    const ScanEnd end = advance(*sure_, sure.index);
    if (end != ScanEnd::kDone) return end;
  }
  note_places(*sure_);
  clear(*sure_);
  std::swap(sure_, guess_);
  sure_->index = sure.index - other.index;
  sure_->before_last_run.index += sure_->index;
  for (Place& stand : sure_->stands) stand.index += sure_->index;
  sure_from_ = sure.index;
  return deliver(*sure_, other.index, scan_.blocks);
}

// Follows both until they are at the same place. Whichever is behind takes the next step.
bool ScanDecoder::meet(Place& first, Place& second) const {
  for (int steps = 0; steps < kMostSteps; ++steps) {
    if (first.bit == second.bit && first.block == second.block) return true;
    if (first.bit >= end_bit_ || second.bit >= end_bit_) return false;
    if (!step(second.bit <= first.bit ? second : first)) return false;
  }
  return false;
}

// To the beginning of the next block. False: impossible data. Look-ups as in entropy_loop.h, without the coefficients.
bool ScanDecoder::step(Place& place) const {
  if (place.bit > end_bit_ || (place.coefficient == 0 && !step_dc(place))) return false;
  const std::uint64_t* const entries = place.block->ac->entries.data();
  auto last = static_cast<std::uint64_t>(2 * place.coefficient - 1);  // byte of the block written
  while (last < kBlockBytes - 1) {
    if (place.bit > end_bit_) return false;
    std::uint64_t bits = peek(scan_.data, place.bit);
    std::int64_t bit = place.bit;
    bool leaves = false;
    for (int i = 0; i < kLookUpsInWord && last < kBlockBytes - 1; ++i) {
      const std::uint64_t entry = entries[bits >> (64 - kIndexBits)];
      leaves = last + field_of(entry, EntryField::kReach) >= kBlockBytes;
      if (leaves) break;
      bit += static_cast<std::int64_t>(field_of(entry, EntryField::kBits));
      bits <<= field_of(entry, EntryField::kBits) & 63;
      last = (last + field_of(entry, EntryField::kAdvance)) | field_of(entry, EntryField::kEnd);
    }
    place.bit = bit;
    if (!leaves) continue;
    place.coefficient = static_cast<int>(last + 1) / 2;
    if (!step_symbol(place)) return false;
    last = static_cast<std::uint64_t>(2 * place.coefficient - 1);
  }
  place.coefficient = 0;
  place.block = place.block->next;
  ++place.index;
  return true;
}

bool ScanDecoder::step_dc(Place& place) const {
  const std::uint64_t entry = place.block->dc->entries[peek(scan_.data, place.bit) >> (64 - kIndexBits)];
  if (field_of(entry, EntryField::kReach) == HuffmanTable::kLeave) return step_symbol(place);
  place.bit += static_cast<std::int64_t>(field_of(entry, EntryField::kBits));
  place.coefficient = 1;
  return true;
}

// One symbol by its code. False: impossible.
bool ScanDecoder::step_symbol(Place& place) const {
  const bool is_dc = place.coefficient == 0;
  const Code code = look_up((is_dc ? place.block->dc : place.block->ac)->code, peek(scan_.data, place.bit));
  if (code.length > 16) return false;
  const int size = code.symbol & 15, run = is_dc ? 0 : code.symbol >> 4;
  place.bit += code.length + size;
  const bool ends = !is_dc && size == 0 && run != 15;
  place.coefficient = ends ? kCoefficients : place.coefficient + run + 1;
  return place.coefficient <= kCoefficients;
}

// Whether the blocks asked for, all of them decoded, took no bits from after the data, and left none that count.
bool ScanDecoder::ends_inside_data() const {
  Place place = sure_->before_last_run;
  if (place.block == nullptr) return !scan_.ends_data;  // never came near the end
  while (place.index < scan_.blocks) {
    if (!step(place)) return false;
  }
  return place.bit <= end_bit_ && (!scan_.ends_data || end_bit_ - place.bit < 8);
}

// The place after the last block, walked to from where the last window before it began, or from the last gate.
bool ScanDecoder::note_end() {
  note_places(*sure_);
  SeekRecorder& recorder = scan_.recording->recorder;
  const SeekRecorder::Place known = recorder.last();
  Place place{known.bit, scan_.mcu.data(), 0, known.block};
  for (const Place& stand : sure_->stands) {
    if (stand.index < scan_.blocks && stand.index >= std::max(sure_from_, place.index)) place = stand;
  }
  while (place.index < scan_.blocks) {
    if (!step(place)) return false;
  }
  recorder.add({place.index, place.bit});
  return true;
}

}  // namespace millrace::kernels::jpeg
