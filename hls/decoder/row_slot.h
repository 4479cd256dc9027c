// What makes the tensor of one image of rows. Thread-bound(the kernel's caller).
#pragma once

#include "hls/decoder/rows.h"
#include "hls/decoder/tensor_chain.h"

namespace millrace {
namespace hls {

class RowSlot {
 public:
  static constexpr Source kMakes = Source::kRows;

  void start(const Job& job, const Ports&) {
    words_.clear();
    loader_.start(job);
    reader_.start(job);
    tensor_.start(job);
  }
  bool step(const Ports& ports) {
#pragma HLS DATAFLOW
    const bool loaded = loader_.step(ports.encoded, words_);
    const bool read = reader_.step(words_, tensor_.pixels());
    const bool made = tensor_.step(ports);
    return loaded || read || made;
  }
  bool is_over() const {
    return tensor_.is_over();
  }
  Outcome take_outcome() {
    return {tensor_.take_reason(), 0, tensor_.sum()};
  }

  template <typename Visitor>
  void each_fifo(Visitor&& visit) const {
    visit("row words", words_);
    tensor_.each_fifo(visit);
  }

 private:
  BurstFifo words_;
  RowLoader loader_;
  RowReader reader_;
  TensorChain tensor_;
};

}  // namespace hls
}  // namespace millrace
