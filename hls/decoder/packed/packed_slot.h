// What makes the tensor of one packed image: its groups to tokens, and those through the stages that kernels share.
// Thread-bound(the kernel's caller).
#pragma once

#include "hls/decoder/packed/packed.h"
#include "hls/decoder/picture_chain.h"

namespace millrace {
namespace hls {

class PackedSlot {
 public:
  static constexpr Source kMakes = Source::kPacked;

  void start(const Job& job, const Ports& ports);
  bool step(const Ports& ports);
  bool is_over() const { return picture_.is_over() && !verdicts_.empty(); }
  Outcome take_outcome();

  template <typename Visitor>
  void each_fifo(Visitor&& visit) const {
    visit("group sizes", sizes_);
    visit("groups", groups_);
    visit("unpacking verdicts", verdicts_);
    picture_.each_fifo(visit);
  }

 private:
  BurstFifo sizes_, groups_;
  VerdictFifo verdicts_;
  SourceLoader size_loader_, group_loader_;
  PackedTableFeed table_feed_;
  GroupUnpacker unpacker_;
  PictureChain picture_;
};

}  // namespace hls
}  // namespace millrace
