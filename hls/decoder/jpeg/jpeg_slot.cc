#include "hls/decoder/jpeg/jpeg_slot.h"

namespace millrace {
namespace hls {

void JpegSlot::start(const Job& job, const Ports&) {
  words_.clear();
  pieces_.clear();
  codes_.clear();
  verdicts_.clear();
  const std::uint32_t quants = job.image.tables + kHeadUnits, codes = quants + kQuantUnits;
  code_feed_.start({codes, kCodes * kCodeUnits}, {0, 0});
  loader_.start(job);
  unstuffer_.start(job);
  huffman_.start(job, most_symbols(job));
  picture_.start(job, {quants, kQuantUnits});
}

bool JpegSlot::step(const Ports& ports) {
#pragma HLS DATAFLOW
  // What follows the image in its source is of no interest.
  if (unstuffer_.has_ended()) loader_.stop();
  const bool codes = code_feed_.step(ports.commands, codes_);
  const bool loaded = loader_.step(ports.encoded, words_);
  const bool unstuffed = unstuffer_.step(words_, pieces_);
  const bool decoded = huffman_.step(codes_, pieces_, picture_.tokens(), verdicts_);
  const bool made = picture_.step(ports);
  return codes || loaded || unstuffed || decoded || made;
}

// A table that leads out of the crop comes first: it is the host's fault.
Outcome JpegSlot::take_outcome() {
  const Reason picture = picture_.take_reason();
  const ScanVerdict scan = verdicts_.read();
  const Reason reason = picture == Reason::kBadDescriptor || scan.reason == Reason::kDone ? picture : scan.reason;
  return {reason, scan.symbols, picture_.sum()};
}

}  // namespace hls
}  // namespace millrace
