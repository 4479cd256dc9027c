#include <algorithm>

#include "hls/model/decoder_flow.h"

namespace millrace::hls::model {

Clocks Decoder::entropy_clocks(const Job& job, const McuWork& mcu, bool is_first) const {
  Clocks clocks = is_first
                      ? static_cast<Clocks>(design_.clocks_an_image) +
                            static_cast<Clocks>(design_.clocks_a_table_symbol) * static_cast<Clocks>(job.table_symbols)
                      : 0;
  if (design_.source == Source::kPacked)
    return clocks + mcu.blocks +
           static_cast<Clocks>((mcu.symbols + design_.values_a_clock - 1) / design_.values_a_clock);
  return clocks + static_cast<Clocks>(design_.turns) * (mcu.symbols + mcu.blocks * design_.clocks_a_block);
}

Clocks Decoder::clocks(int kind, Token token) const {
  if (kind == kIn) return design_.counts_pcie ? calls_[token.thing].bytes_in / per_clock(card_.pcie_in) : 0;
  if (kind == kOut) return design_.counts_pcie ? calls_[token.thing].bytes_out / per_clock(card_.pcie_out) : 0;
  const Job& job = jobs_[token.thing];
  const McuWork& mcu = job.mcus[token.part];
  const LineWork& line = job.lines[mcu.line];
  const double port = std::min(64.0, per_clock(card_.port));
  switch (kind) {
    case kFetch:
      return ((token.part == 0 ? static_cast<double>(job.command_bytes) : 0) + mcu.bytes) / port;
    case kEntropy:
      return entropy_clocks(job, mcu, token.part == 0);
    case kGather:
      return mcu.symbols + design_.gather_clocks;
    case kIdct:
      return mcu.idct_blocks * 64.0 / design_.idct_coefficients;
    case kColour:
      return (mcu.pixels + design_.colour_pixels - 1) / design_.colour_pixels;
    case kColumns:
      return static_cast<Clocks>(line.columns) / design_.resample_pixels;
    case kRows:
      return static_cast<Clocks>(line.rows) / design_.resample_pixels;
    default:
      break;
  }
  const double bytes = design_.makes_tensors ? static_cast<double>(line.pixels) * kPixelChannels * design_.element_bytes
                                             : mcu.idct_blocks * 64.0;
  return bytes / std::min<double>(design_.write_bytes, port);
}

Emission Decoder::emission(int kind, Token token) const {
  if (kind == kIn || kind == kOut || kind == kWrite) return {0, 0, false};
  const Job& job = jobs_[token.thing];
  const McuWork& mcu = job.mcus[token.part];
  if (kind == kFetch) {
    const auto bytes = static_cast<std::int64_t>(mcu.bytes) + 1;
    return {bytes, bytes, true};
  }
  if (kind == kEntropy || kind == kGather) return mcu.idct_blocks > 0 ? Emission{1, 1, true} : Emission{0, 0, false};
  if (kind == kIdct && !design_.makes_tensors) return {mcu.idct_blocks * 64, mcu.idct_blocks * 64, true};
  if (kind == kIdct || kind == kColumns) return {1, 1, true};
  if (kind == kColour) return {mcu.begins_line ? 1 : 0, 1, mcu.ends_line};
  const std::int64_t bytes = std::int64_t{job.lines[mcu.line].pixels} * kPixelChannels * design_.element_bytes;
  return {bytes, bytes, bytes > 0 || mcu.ends_crop};
}

void Decoder::finished(int kind, std::size_t queue, Token token, Clocks now) {
  if (kind == kIn) {
    units_[queue].arrived.push_back(token.thing);
    begin_calls(queue, now);
    return;
  }
  if (kind == kOut) {
    --units_[queue].unread;
    calls_[token.thing].done = now;
    begin_calls(queue, now);
    return;
  }
  const McuWork& mcu = jobs_[token.thing].mcus[token.part];
  if (kind == kEntropy) {
    blocks_in_ += mcu.idct_blocks;
    if (token.part + 1 == jobs_[token.thing].mcus.size()) image_part_done(token.thing, now);
    return;
  }
  if (design_.makes_tensors)
    pixels_out_ += jobs_[token.thing].lines[mcu.line].pixels;
  else
    blocks_out_ += mcu.idct_blocks;
  if (mcu.ends_crop) image_part_done(token.thing, now);
}

void Decoder::begin_calls(std::size_t index, Clocks now) {
  Unit& unit = units_[index];
  while (!unit.arrived.empty() && unit.calls < design_.calls && unit.unread < std::max(2, design_.calls)) {
    flow_.set_timer(now + design_.call_us * design_.clock_mhz, unit.arrived.front());
    unit.arrived.pop_front();
    ++unit.calls;
  }
}

void Decoder::begin_call(std::size_t index, Clocks now) {
  Call& call = calls_[index];
  Unit& unit = units_[call.unit];
  call.began = now - design_.call_us * design_.clock_mhz;
  for (std::uint32_t i = call.first; i < call.end; ++i) unit.ready.push_back(i);
  for (Turn& turn : unit.turns) {
    if (!turn.has_image) feed(unit, turn, now);
  }
}

void Decoder::idle_turn(std::size_t fifo, Clocks now) {
  const auto [unit, turn] = turn_of_.at(fifo);
  units_[unit].turns[turn].has_image = false;
  units_[unit].turns[turn].since = now;
  feed(units_[unit], units_[unit].turns[turn], now);
}

void Decoder::feed(Unit& unit, Turn& turn, Clocks now) {
  if (unit.ready.empty()) return;
  const std::uint32_t image = unit.ready.front();
  unit.ready.pop_front();
  turn.no_image += now - turn.since;
  turn.has_image = true;
  for (std::uint32_t part = 0; part < jobs_[image].mcus.size(); ++part) flow_.push(turn.feed, {image, part});
}

void Decoder::image_part_done(std::uint32_t image, Clocks now) {
  if (--parts_left_[image] > 0) return;
  done_.push_back(now);
  const std::size_t index = image / static_cast<std::size_t>(design_.batch);
  Call& call = calls_[index];
  if (--call.open > 0) return;
  call.done = now;
  Unit& unit = units_[call.unit];
  --unit.calls;
  ++unit.unread;
  flow_.push(unit.back, {static_cast<std::uint32_t>(index), 0});
  begin_calls(call.unit, now);
}

}  // namespace millrace::hls::model
