// What decodes one JPEG image: its scan's bytes to tokens, and those through the stages that kernels share.
// Thread-bound(the kernel's caller).
#pragma once

#include "hls/decoder/picture_chain.h"

namespace millrace {
namespace hls {

class JpegSlot {
 public:
  static constexpr Source kMakes = Source::kJpegScan;

  void start(const Job& job, const Ports& ports);
  bool step(const Ports& ports);
  bool is_over() const { return picture_.is_over() && !verdicts_.empty(); }
  Outcome take_outcome();

  template <typename Visitor>
  void each_fifo(Visitor&& visit) const {
    visit("scan words", words_);
    visit("pieces", pieces_);
    visit("codes", codes_);
    visit("scan verdicts", verdicts_);
    picture_.each_fifo(visit);
  }

 private:
  BurstFifo words_;
  PieceFifo pieces_;
  SetupFifo codes_;
  VerdictFifo verdicts_;
  TableFeed code_feed_;
  SourceLoader loader_;
  ScanUnstuffer unstuffer_;
  HuffmanSlot huffman_;
  PictureChain picture_;
};

}  // namespace hls
}  // namespace millrace
