#include "hls/decoder/tensor_chain.h"

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

}  // namespace hls
}  // namespace millrace
