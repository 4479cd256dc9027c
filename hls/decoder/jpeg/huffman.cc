#include "hls/decoder/jpeg/huffman.h"

namespace millrace {
namespace hls {
namespace {

// Before the lane's other image has its turn.
#if defined(__SYNTHESIS__)
constexpr int kSymbolsAtOnce = 1;
#else
constexpr int kSymbolsAtOnce = 4096;
#endif

// The coefficient's value from its bits, which stand on top (T.81 F.2.2.1).
int extend(std::uint32_t bits, std::uint32_t size) {
  const int value = static_cast<int>(bits >> 1 >> (31 - size));
  return (bits >> 31) != 0 ? value : value - (1 << size) + 1;
}

}  // namespace

// Limits, then offsets, then symbols: HuffmanTable.
void CanonicalCode::load(std::uint32_t unit, const Burst& word) {
  constexpr std::uint32_t kOffsets = 16, kSymbols = 4 * (16 + 17);
  for (unsigned i = 0; i < 16; ++i) {
#pragma HLS UNROLL
    const std::uint32_t at = unit * 16 + i;
    if (at < kOffsets) {
      limit_[at] = number_of(word, i);
    } else if (at < kOffsets + 17) {
      offset_[at - kOffsets] = number_of(word, i);
    }
  }
  for (unsigned i = 0; i < kBurstBytes; ++i) {
#pragma HLS UNROLL
    const std::uint32_t at = unit * kBurstBytes + i;
    if (at >= kSymbols && at < kSymbols + 256) symbols_[at - kSymbols] = byte_of(word, i);
  }
}

void HuffmanSlot::start(const Job& job, std::uint64_t most_symbols) {
  job_ = job;
  state_ = State::kLoad;
  loaded_ = 0;
  bits_ = 0;
  valid_ = 0;
  at_marker_ = ended_ = false;
  levels_[0] = levels_[1] = levels_[2] = 0;
  block_ = coefficient_ = 0;
  mcus_left_ = mcus(job);
  until_restart_ = job.restart_interval;
  next_restart_ = kFirstRestart;
  verdict_ = {Reason::kDone, 0, 0};
  symbols_left_ = most_symbols;
}

bool HuffmanSlot::step(SetupFifo& setup, PieceFifo& pieces, TokenFifo& tokens, VerdictFifo& verdicts) {
  switch (state_) {
    case State::kIdle:
      return false;
    case State::kLoad:
      return load(setup);
    case State::kBlocks:
      return decode(pieces, tokens);
    case State::kRestart:
    case State::kEnd:
      return meet_marker(pieces);
    case State::kPad:
      return pad(tokens);
    case State::kDrain:
      return drop(pieces);
    case State::kTell:
      if (verdicts.full()) return false;
      verdicts.write(verdict_);
      state_ = State::kIdle;
      return true;
  }
  return false;
}

bool HuffmanSlot::load(SetupFifo& setup) {
  bool moved = false;
  while (state_ == State::kLoad && !setup.empty()) {
#pragma HLS PIPELINE II = 1
    codes_[loaded_ / kCodeUnits].load(loaded_ % kCodeUnits, setup.read());
    moved = true;
    if (++loaded_ == kCodes * kCodeUnits) state_ = State::kBlocks;
  }
  return moved;
}

// False: bits are lacking that may still come.
bool HuffmanSlot::fill(PieceFifo& pieces) {
  if (valid_ > 32 || at_marker_) return true;
  if (pieces.empty()) return valid_ == 32;
  const Piece piece = pieces.read();
  if (piece.bytes == 0) {
    at_marker_ = true;
    marker_ = piece.marker;
    ended_ = !is_restart(piece.marker);
    return true;
  }
  bits_ |= std::uint64_t{piece.data} << (32 - valid_);
  valid_ += 8U * piece.bytes;
  return valid_ >= 32;
}

bool HuffmanSlot::decode(PieceFifo& pieces, TokenFifo& tokens) {
  for (int i = 0; i < kSymbolsAtOnce && state_ == State::kBlocks; ++i) {
#pragma HLS PIPELINE II = 1
    if (tokens.full()) return i > 0;
    const std::uint32_t before = valid_;
    if (!fill(pieces)) {
      if (valid_ == before) return i > 0;
      continue;
    }
    take_symbol(tokens);
  }
  return true;
}

// False: the image is damaged, and nothing went on.
bool HuffmanSlot::take_symbol(TokenFifo& tokens) {
  const int component = component_of(job_, block_);
  const bool is_dc = coefficient_ == 0;
  const CanonicalCode& code = codes_[is_dc ? job_.dc[component] : kTables + job_.ac[component]];
  const std::uint32_t next = static_cast<std::uint32_t>(bits_ >> 32);
  const CanonicalCode::Match match = code.find(next >> 16);
  Token token = {0, 0, 0};
  if (match.length > 16 || symbols_left_ == 0) {
    fail(match.length > 16 ? Reason::kDamaged : Reason::kTooLong);
    return false;
  }
  --symbols_left_;
  ++verdict_.symbols;
  const bool fine = is_dc ? take_level(next, match.length, match.symbol, token)
                          : take_coefficient(next, match.length, match.symbol, token);
  if (!fine) return false;
  tokens.write(token);
  if (token.last != 0) leave_block();
  return true;
}

bool HuffmanSlot::consume(std::uint32_t count) {
  if (count > valid_) {
    fail(Reason::kDamaged);
    return false;
  }
  bits_ <<= count;
  valid_ -= count;
  return true;
}

bool HuffmanSlot::take_level(std::uint32_t next, std::uint32_t used, std::uint8_t symbol, Token& token) {
  const std::uint32_t size = symbol & 15U;
  if (symbol > 15 || !consume(used + size)) {
    fail(Reason::kDamaged);
    return false;
  }
  int& level = levels_[component_of(job_, block_)];
  level += extend(next << used, size);
  if (level < INT16_MIN || level > INT16_MAX) {
    fail(Reason::kExtreme);
    return false;
  }
  token.value = static_cast<std::int16_t>(level);
  coefficient_ = 1;
  return true;
}

bool HuffmanSlot::take_coefficient(std::uint32_t next, std::uint32_t used, std::uint8_t symbol, Token& token) {
  const std::uint32_t size = symbol & 15U;
  const int run = symbol >> 4;
  if (!consume(used + size)) return false;
  if (size == 0 && run != 15) {  // the block ends
    token.at = kCoefficients - 1;
    token.last = 1;
    return true;
  }
  const int at = coefficient_ + run;
  if (at >= kCoefficients) {
    fail(Reason::kDamaged);
    return false;
  }
  token.at = static_cast<std::uint8_t>(at);
  if (size != 0) token.value = static_cast<std::int16_t>(extend(next << used, size));
  token.last = at == kCoefficients - 1;
  coefficient_ = at + 1;
  return true;
}

void HuffmanSlot::leave_block() {
  ++verdict_.blocks;
  coefficient_ = 0;
  if (++block_ < blocks_in_mcu(job_)) return;
  block_ = 0;
  if (--mcus_left_ == 0) {
    state_ = State::kEnd;
  } else if (job_.restart_interval != 0 && --until_restart_ == 0) {
    state_ = State::kRestart;
  }
}

// Between the last block and the marker behind it stand less than eight bits.
bool HuffmanSlot::meet_marker(PieceFifo& pieces) {
  if (!at_marker_ && valid_ < 8) {
    if (pieces.empty()) return false;
    fill(pieces);
    return true;
  }
  const bool ends = state_ == State::kEnd;
  if (valid_ >= 8 || marker_ != (ends ? kEndOfImage : next_restart_)) {
    fail(Reason::kDamaged);
    return true;
  }
  if (ends) {
    state_ = State::kTell;
    return true;
  }
  bits_ = 0;
  valid_ = 0;
  at_marker_ = false;
  levels_[0] = levels_[1] = levels_[2] = 0;
  until_restart_ = job_.restart_interval;
  next_restart_ = kFirstRestart | ((next_restart_ + 1) & 7);
  state_ = State::kBlocks;
  return true;
}

// Blocks of nothing, for those that are not there. One that was begun ends.
bool HuffmanSlot::pad(TokenFifo& tokens) {
  bool moved = false;
  while (mcus_left_ > 0 && !tokens.full()) {
#pragma HLS PIPELINE II = 1
    tokens.write({0, kCoefficients - 1, 1});
    moved = true;
    if (++block_ < blocks_in_mcu(job_)) continue;
    block_ = 0;
    --mcus_left_;
  }
  if (mcus_left_ == 0) state_ = State::kDrain;
  return moved || mcus_left_ == 0;
}

// The rest of the scan.
bool HuffmanSlot::drop(PieceFifo& pieces) {
  bool moved = false;
  while (!ended_ && !pieces.empty()) {
#pragma HLS PIPELINE II = 1
    const Piece piece = pieces.read();
    ended_ = piece.bytes == 0 && !is_restart(piece.marker);
    moved = true;
  }
  if (!ended_) return moved;
  state_ = State::kTell;
  return true;
}

void HuffmanSlot::fail(Reason reason) {
  if (state_ == State::kPad) return;
  verdict_.reason = reason;
  state_ = State::kPad;
}

}  // namespace hls
}  // namespace millrace
