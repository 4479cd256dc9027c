#include <algorithm>

#include "hls/model/decoder_flow.h"

namespace millrace::hls::model {

std::size_t Decoder::add_kind(Kind kind, std::vector<Dataflow::Queue> queues, Clocks latency, bool tells) {
  stages_[kind].push_back(flow_.add_stage({kNames[kind], kind, latency, tells, std::move(queues)}));
  return stages_[kind].back();
}

std::vector<std::size_t> Decoder::add_fifos(const char* name, std::size_t count, std::int64_t capacity) {
  std::vector<std::size_t> made;
  for (std::size_t i = 0; i < count; ++i) made.push_back(flow_.add_fifo(name, capacity));
  auto& all = fifos_[name];
  all.insert(all.end(), made.begin(), made.end());
  capacities_[name] = capacity;
  return made;
}

namespace {

std::vector<Dataflow::Queue> joined(std::span<const std::size_t> in, std::span<const std::size_t> out) {
  std::vector<Dataflow::Queue> queues;
  for (std::size_t i = 0; i < in.size(); ++i) queues.push_back({in[i], out.empty() ? Dataflow::kNone : out[i]});
  return queues;
}

}  // namespace

void Decoder::build() {
  make_calls();
  units_.resize(static_cast<std::size_t>(design_.units));
  std::vector<Dataflow::Queue> in, out;
  for (std::size_t unit = 0; unit < units_.size(); ++unit) {
    in.push_back({flow_.add_fifo("files", Dataflow::kEndless), Dataflow::kNone});
    units_[unit].back = flow_.add_fifo("tensors", Dataflow::kEndless);
    out.push_back({units_[unit].back, Dataflow::kNone});
    for (std::size_t call = unit; call < calls_.size(); call += units_.size())
      flow_.push(in.back().in, {static_cast<std::uint32_t>(call), 0});
  }
  add_kind(kIn, in, 0, true);
  for (std::size_t unit = 0; unit < units_.size(); ++unit) build_unit(unit);
  add_kind(kOut, out, 0, true);
}

void Decoder::build_unit(std::size_t index) {
  Unit& unit = units_[index];
  const auto turns = static_cast<std::size_t>(design_.lanes) * static_cast<std::size_t>(design_.turns);
  std::vector<std::size_t> feeds;
  for (std::size_t i = 0; i < turns; ++i) {
    feeds.push_back(flow_.add_fifo("feed", Dataflow::kEndless, true));
    turn_of_[feeds.back()] = {index, i};
  }
  const auto streams = add_fifos("stream", turns, design_.stream_bytes);
  const auto coefficients = add_fifos("coefficients", turns, design_.mcu_buffers);
  add_kind(kFetch, joined(feeds, streams), 64);
  for (std::size_t i = 0; i < turns; ++i) {
    const std::size_t stage = add_kind(kEntropy, {{streams[i], coefficients[i]}}, 8, true);
    unit.turns.push_back({.feed = feeds[i], .entropy = stage});
  }
  const auto per_idct = static_cast<std::size_t>(design_.lanes_an_idct * design_.turns);
  std::vector<std::size_t> last;
  for (std::size_t i = 0; i < turns; i += per_idct) {
    const std::vector<std::size_t> in(
        coefficients.begin() + static_cast<std::ptrdiff_t>(i),
        coefficients.begin() + static_cast<std::ptrdiff_t>(std::min(turns, i + per_idct)));
    build_group(in, last);
  }
  add_kind(kWrite, joined(design_.makes_tensors ? build_resamplers(last) : last, {}), 0, true);
}

// The FIFOs behind them.
std::vector<std::size_t> Decoder::build_resamplers(const std::vector<std::size_t>& lines) {
  const std::size_t turns = lines.size();
  const auto each = static_cast<std::size_t>(design_.lanes_a_resampler * design_.turns);
  auto words = add_fifos("words", turns, design_.word_bytes);
  const auto filtered = add_fifos("filtered", turns, design_.filtered_rows);
  for (std::size_t i = 0; i < turns; i += each) {
    const std::size_t count = std::min(each, turns - i);
    const auto part = [i, count](const std::vector<std::size_t>& all) { return std::span(all).subspan(i, count); };
    add_kind(kColumns, joined(part(lines), part(filtered)), 24);
    add_kind(kRows, joined(part(filtered), part(words)), 24);
  }
  return words;
}

// An inverse DCT and what belongs to it alone; `out`: its last FIFOs.
void Decoder::build_group(const std::vector<std::size_t>& in, std::vector<std::size_t>& out) {
  std::vector<std::size_t> blocks = in;
  if (design_.gather_clocks >= 0) {
    blocks = add_fifos("gathered", in.size(), 2);
    add_kind(kGather, joined(in, blocks), 4);
  }
  std::vector<std::size_t> last;
  if (design_.makes_tensors) {
    const auto samples = add_fifos("samples", in.size(), design_.sample_mcus);
    last = add_fifos("lines", in.size(), design_.line_rows);
    add_kind(kIdct, joined(blocks, samples), 32);
    add_kind(kColour, joined(samples, last), 16);
  } else {
    last = add_fifos("words", in.size(), design_.word_bytes);
    add_kind(kIdct, joined(blocks, last), 32);
  }
  out.insert(out.end(), last.begin(), last.end());
}

void Decoder::make_calls() {
  parts_left_.assign(jobs_.size(), 2);
  for (std::size_t first = 0; first < jobs_.size(); first += static_cast<std::size_t>(design_.batch)) {
    Call call;
    call.unit = calls_.size() % static_cast<std::size_t>(design_.units);
    call.first = static_cast<std::uint32_t>(first);
    call.end = static_cast<std::uint32_t>(std::min(jobs_.size(), first + static_cast<std::size_t>(design_.batch)));
    call.open = call.end - call.first;
    const int pixel_bytes = design_.makes_tensors ? kPixelChannels * design_.element_bytes : 1;
    for (std::uint32_t i = call.first; i < call.end; ++i) {
      call.bytes_in += static_cast<double>(jobs_[i].source_bytes + jobs_[i].command_bytes);
      call.bytes_out += static_cast<double>(jobs_[i].pixels * pixel_bytes);
    }
    memory_bytes_ += 2 * (call.bytes_in + call.bytes_out);  // written and read, each
    calls_.push_back(call);
  }
}

}  // namespace millrace::hls::model
