// The stages that kernels share, joined by their FIFOs: pixels to a tensor, and coefficients to pixels.
//
//   tokens ─▶ Dequantiser ─▶ InverseDct ─▶ Raster ─▶ Colour ─▶│─▶ Resampler ─▶ TensorWriter ─▶ tensors
//   └──────────────────────── PictureChain ───────────────────┘└───────────── TensorChain ────────────┘
//
// Each stage steps as far as its FIFOs let it. Thread-bound(the kernel's caller).
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
  std::uint32_t symbols, blocks;
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

class PictureChain {
 public:
  TokenFifo& tokens() { return tokens_; }
  SetupFifo& quants() { return quants_; }

  // `quant_tables`: of the commands; none: they come by quants().
  void start(const Job& job, const UnitRange& quant_tables);
  bool step(const Ports& ports);
  bool is_over() const { return tensor_.is_over() && !extremes_.empty(); }
  Reason take_reason();

  template <typename Visitor>
  void each_fifo(Visitor&& visit) const {
    visit("tokens", tokens_);
    visit("quantisation tables", quants_);
    visit("columns", columns_);
    visit("samples", samples_);
    visit("groups", groups_);
    visit("extremes", extremes_);
    tensor_.each_fifo(visit);
  }

 private:
  TokenFifo tokens_;
  SetupFifo quants_;
  ColumnFifo columns_;
  SampleFifo samples_;
  GroupFifo groups_;
  FlagFifo extremes_;
  TableFeed quant_feed_;
  Dequantiser dequantiser_;
  InverseDct inverse_dct_;
  Raster raster_;
  Colour colour_;
  TensorChain tensor_;
};

}  // namespace hls
}  // namespace millrace
