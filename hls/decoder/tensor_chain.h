// From pixels to a tensor: the stages that all kernels have, joined by their FIFOs. Each steps as far as its FIFOs let it.
//
//   pixels ─▶ Resampler ─▶ TensorWriter ─▶ tensors
//
// Thread-bound(the kernel's caller).
#pragma once

#include "hls/decoder/table_feed.h"
#include "hls/decoder/tensor_writer.h"

namespace millrace {
namespace hls {

// The buffers of a call.
struct Ports {
  ReadPort commands, encoded;
  WritePort tensors, completions;
};

// How an image ended.
struct Outcome {
  Reason reason;
  std::uint32_t symbols, sum;
};

class TensorChain {
 public:
  GroupFifo& pixels() { return pixels_; }

  void start(const Job& job);
  bool step(const Ports& ports);
  // True: all of the tensor is written, or what would be is none.
  bool is_over() const { return !done_.empty() && !wrong_.empty(); }
  // REQUIRES: is_over(). Once an image.
  Reason take_reason();
  // Of the tensor. REQUIRES: is_over() was true.
  std::uint32_t sum() const { return writer_.sum(); }

  template <typename Visitor>
  void each_fifo(Visitor&& visit) const {
    visit("pixels", pixels_);
    visit("tensor rows", rows_);
    visit("axis tables", axes_);
    visit("element tables", store_);
    visit("axis verdicts", wrong_);
    visit("ends", done_);
  }

 private:
  GroupFifo pixels_, rows_;
  SetupFifo axes_, store_;
  FlagFifo wrong_, done_;
  TableFeed axis_feed_, store_feed_;
  Resampler resampler_;
  TensorWriter writer_;
};

}  // namespace hls
}  // namespace millrace
