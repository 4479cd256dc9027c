#include "hls/model/decoder.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>

#include "hls/model/dataflow.h"

namespace millrace::hls::model {
namespace {

enum Kind : int { kIn, kFetch, kEntropy, kGather, kIdct, kColour, kColumns, kRows, kWrite, kOut, kKinds };
constexpr const char* kNames[kKinds] = {"pcie in", "fetch",   "entropy", "gather", "idct",
                                        "colour",  "columns", "rows",    "write",  "pcie out"};
constexpr const char* kCostOf[kKinds] = {"",       "fetch",    "entropy",  "entropy", "idct",
                                         "colour", "resample", "resample", "write",   ""};
constexpr int kPixelChannels = 3;

class Decoder final : public Work {
 public:
  Decoder(const Design& design, const Card& card, std::span<const Job> jobs)
      : design_(design), card_(card), jobs_(jobs) {
    build();
  }
  Prediction run();

  Clocks clocks(int kind, Token token) const override;
  Emission emission(int kind, Token token) const override;
  void finished(int kind, std::size_t queue, Token token, Clocks now) override;
  void emptied(std::size_t fifo, Clocks now) override { idle_turn(fifo, now); }
  void timer(std::size_t which, Clocks now) override { begin_call(which, now); }

 private:
  struct Turn {
    std::size_t feed = 0, entropy = 0;
    Clocks since = 0, no_image = 0;
    bool has_image = false;
  };
  struct Unit {
    std::deque<std::size_t> arrived;  // calls whose bytes are on the card
    std::deque<std::uint32_t> ready;  // images of calls that began
    std::vector<Turn> turns;
    std::size_t back = 0;  // FIFO of finished calls
    int calls = 0;         // begun and not finished
    int unread = 0;        // finished, tensors still on the card
  };
  struct Call {
    std::uint32_t first = 0, end = 0, open = 0;  // images
    std::size_t unit = 0;
    double bytes_in = 0, bytes_out = 0;
    Clocks began = -1, done = 0;
  };

  void build();
  void build_unit(std::size_t unit);
  void build_group(const std::vector<std::size_t>& in, std::vector<std::size_t>& out);
  std::size_t add_kind(Kind kind, std::vector<Dataflow::Queue> queues, Clocks latency = 0, bool tells = false);
  std::vector<std::size_t> add_fifos(const char* name, std::size_t count, std::int64_t capacity);
  void make_calls();
  void begin_calls(std::size_t unit, Clocks now);
  void begin_call(std::size_t call, Clocks now);
  void idle_turn(std::size_t fifo, Clocks now);
  void feed(Unit& unit, Turn& turn, Clocks now);
  void image_part_done(std::uint32_t image, Clocks now);
  double per_clock(double gb) const { return gb * 1e3 / design_.clock_mhz; }  // bytes
  Clocks entropy_clocks(const Job& job, const McuWork& mcu, bool is_first) const;
  void report(Prediction& prediction) const;
  void rate(Prediction& prediction) const;

  const Design& design_;
  const Card& card_;
  std::span<const Job> jobs_;
  Dataflow flow_;
  std::vector<Unit> units_;
  std::vector<Call> calls_;
  std::vector<std::uint8_t> parts_left_;                                // of each image: decoding it, writing it
  std::map<std::size_t, std::pair<std::size_t, std::size_t>> turn_of_;  // a feed's unit and turn
  std::vector<std::vector<std::size_t>> stages_ = std::vector<std::vector<std::size_t>>(kKinds);
  std::map<std::string, std::vector<std::size_t>> fifos_;
  std::map<std::string, std::int64_t> capacities_;
  double memory_bytes_ = 0;
  std::int64_t blocks_in_ = 0, blocks_out_ = 0, pixels_out_ = 0;
};

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

std::vector<Dataflow::Queue> joined(std::span<const std::size_t> in, std::span<const std::size_t> out) {
  std::vector<Dataflow::Queue> queues;
  for (std::size_t i = 0; i < in.size(); ++i) queues.push_back({in[i], out.empty() ? Dataflow::kNone : out[i]});
  return queues;
}

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
  std::vector<std::size_t> words;
  const auto per_idct = static_cast<std::size_t>(design_.lanes_an_idct * design_.turns);
  std::vector<std::size_t> lines;
  for (std::size_t i = 0; i < turns; i += per_idct) {
    std::vector<std::size_t> in(coefficients.begin() + static_cast<std::ptrdiff_t>(i),
                                coefficients.begin() + static_cast<std::ptrdiff_t>(std::min(turns, i + per_idct)));
    build_group(in, lines);
  }
  if (design_.makes_tensors) {
    const auto per_resampler = static_cast<std::size_t>(design_.lanes_a_resampler * design_.turns);
    words = add_fifos("words", turns, design_.word_bytes);
    const auto filtered = add_fifos("filtered", turns, design_.filtered_rows);
    for (std::size_t i = 0; i < turns; i += per_resampler) {
      const std::size_t count = std::min(per_resampler, turns - i);
      const auto part = [i, count](const std::vector<std::size_t>& all) { return std::span(all).subspan(i, count); };
      add_kind(kColumns, joined(part(lines), part(filtered)), 24);
      add_kind(kRows, joined(part(filtered), part(words)), 24);
    }
  } else {
    words = lines;
  }
  add_kind(kWrite, joined(words, {}), 0, true);
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
  while (!unit.arrived.empty() && unit.calls < design_.calls && unit.unread < 2) {
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

Prediction Decoder::run() {
  Prediction prediction;
  const Clocks end = flow_.run(*this);
  prediction.images = jobs_.size();
  prediction.seconds = end / (design_.clock_mhz * 1e6);
  rate(prediction);
  report(prediction);
  prediction.memory_gb = memory_bytes_ / prediction.seconds / 1e9;
  prediction.blocks_in = blocks_in_;
  prediction.blocks_out = blocks_out_;
  prediction.pixels_out = pixels_out_;
  return prediction;
}

// From the end of the units' first calls to that of their last but one: pipes are full then. Fewer: all of the time.
void Decoder::rate(Prediction& prediction) const {
  std::vector<std::pair<Clocks, std::size_t>> done;
  double lasted = 0;
  for (const Call& call : calls_) {
    done.push_back({call.done, call.end - call.first});
    lasted += call.done - call.began;
  }
  std::sort(done.begin(), done.end());
  const double hertz = design_.clock_mhz * 1e6;
  prediction.call_ms = lasted / static_cast<double>(calls_.size()) / hertz * 1e3;
  const std::size_t skipped = static_cast<std::size_t>(design_.units);
  if (done.size() <= 3 * skipped) {
    prediction.images_a_second = static_cast<double>(jobs_.size()) / prediction.seconds;
    return;
  }
  double images = 0;
  const std::size_t end = done.size() - skipped;
  for (std::size_t i = skipped; i < end; ++i) images += static_cast<double>(done[i].second);
  prediction.images_a_second = images / ((done[end - 1].first - done[skipped - 1].first) / hertz);
}

void Decoder::report(Prediction& prediction) const {
  const Clocks end = flow_.now();
  std::vector<StageCost> costs = costs_of(design_);
  for (StageCost& cost : costs) cost.busy = 0;
  double most = -1;
  for (int kind = 0; kind < kKinds; ++kind) {
    if (stages_[kind].empty()) continue;
    StageReport report{kNames[kind], stages_[kind].size()};
    for (const std::size_t stage : stages_[kind]) {
      const StageUse use = flow_.use_of(stage);
      const double parts = end * static_cast<double>(report.copies);
      report.busy += use.busy / parts;
      report.starved += use.starved / parts;
      report.output_full += use.output_full / parts;
      report.tokens += use.tokens;
    }
    if (kind == kEntropy) {
      for (const Unit& unit : units_) {
        for (const Turn& turn : unit.turns)
          report.no_image +=
              (turn.no_image + (turn.has_image ? 0 : end - turn.since)) / (end * static_cast<double>(report.copies));
      }
      report.no_image = std::min(report.no_image, report.starved);
    }
    if (report.busy > most) {
      most = report.busy;
      prediction.binds = report.stage;
    }
    for (StageCost& cost : costs) {
      if (cost.stage == kCostOf[kind]) cost.busy = std::max(cost.busy, report.busy);
    }
    prediction.stages.push_back(report);
  }
  for (const auto& [name, fifos] : fifos_) {
    std::int64_t held = 0;
    for (const std::size_t fifo : fifos) held = std::max(held, flow_.high_water(fifo));
    prediction.fifos.push_back({name, capacities_.at(name), held});
  }
  prediction.takes = total_of(costs);
  prediction.share = share_of(prediction.takes, card_);
  prediction.watts = watts_of(design_, costs, card_);
  prediction.millijoules = prediction.watts / prediction.images_a_second * 1e3;
}

}  // namespace

Prediction predict(const Design& design, const Card& card, std::span<const Job> jobs) {
  return Decoder(design, card, jobs).run();
}

WorkSpec work_spec(const Design& design, Recipe recipe) {
  return {.source = design.source, .recipe = recipe, .whole_scan = design.decodes_whole_scan};
}

}  // namespace millrace::hls::model
