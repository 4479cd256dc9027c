// From coefficients to a tensor: the stages that the kernels for JPEG files and for packed images share.
//
//   tokens ─▶ Dequantiser ─▶ InverseDct ─▶ Raster ─▶ Colour ─▶ TensorChain ─▶ tensors
//
// Thread-bound(the kernel's caller).
#pragma once

#include "hls/decoder/tensor_chain.h"

namespace millrace {
namespace hls {

class PictureChain {
 public:
  TokenFifo& tokens() { return tokens_; }
  SetupFifo& quants() { return quants_; }

  // `quant_tables`: of the commands; none: they come by quants().
  void start(const Job& job, const UnitRange& quant_tables);
  bool step(const Ports& ports);
  bool is_over() const { return tensor_.is_over() && !extremes_.empty(); }
  Reason take_reason();
  std::uint32_t sum() const { return tensor_.sum(); }

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
