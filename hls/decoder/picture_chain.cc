#include "hls/decoder/picture_chain.h"

namespace millrace {
namespace hls {

void PictureChain::start(const Job& job, const UnitRange& quant_tables) {
  tokens_.clear();
  quants_.clear();
  columns_.clear();
  samples_.clear();
  groups_.clear();
  extremes_.clear();
  quant_feed_.start(quant_tables, {0, 0});
  dequantiser_.start(job);
  inverse_dct_.start();
  raster_.start(job);
  colour_.start(job);
  tensor_.start(job);
}

bool PictureChain::step(const Ports& ports) {
#pragma HLS DATAFLOW
  const bool tables = quant_feed_.step(ports.commands, quants_);
  const bool dequantised = dequantiser_.step(quants_, tokens_, columns_, extremes_);
  const bool transformed = inverse_dct_.step(columns_, samples_);
  const bool in_rows = raster_.step(samples_, groups_);
  const bool coloured = colour_.step(groups_, tensor_.pixels());
  const bool stored = tensor_.step(ports);
  return tables || dequantised || transformed || in_rows || coloured || stored;
}

Reason PictureChain::take_reason() {
  const bool is_extreme = extremes_.read() != 0;
  const Reason reason = tensor_.take_reason();
  return reason == Reason::kDone && is_extreme ? Reason::kExtreme : reason;
}

}  // namespace hls
}  // namespace millrace
