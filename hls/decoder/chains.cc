#include "hls/decoder/chains.h"

namespace millrace {
namespace hls {

void TensorChain::start(const Job& job) {
  pixels_.clear();
  rows_.clear();
  axes_.clear();
  store_.clear();
  wrong_.clear();
  done_.clear();
  const Descriptor& image = job.image;
  axis_feed_.start(axis_units(image.columns, image.out_width, image.column_taps),
                   axis_units(image.rows, image.out_height, image.row_taps));
  store_feed_.start({1, kBatchUnits - 1}, {0, 0});
  resampler_.start(job);
  writer_.start(job);
}

bool TensorChain::step(const Ports& ports) {
#pragma HLS DATAFLOW
  const bool axes = axis_feed_.step(ports.commands, axes_);
  const bool elements = store_feed_.step(ports.commands, store_);
  const bool resampled = resampler_.step(axes_, pixels_, rows_, wrong_);
  const bool written = writer_.step(store_, rows_, ports.tensors, done_);
  return axes || elements || resampled || written;
}

Reason TensorChain::take_reason() {
  done_.read();
  return wrong_.read() != 0 ? Reason::kBadDescriptor : Reason::kDone;
}

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
