// What becomes of decoder processes, told to the daemon's operator: counted by library, and logged a line a user and
// ten seconds. Thread-bound(the lane that owns it).
#pragma once

#include <cstdint>
#include <string_view>

#include "daemon/backend/cpu/isolation/decoder_child.h"
#include "daemon/model/bytes/encoded_image.h"
#include "daemon/observe/bounded_log.h"
#include "daemon/observe/counters.h"

namespace millrace {

// "libspng", of PNG.
std::string_view library_of(ImageFormat format);

// What `answer`, of a process that died, means for the image that it had.
Error death_error(const DecoderAnswer& answer);

class DecoderDeaths {
 public:
  // `counters` outlive this; nullptr: nothing is counted.
  explicit DecoderDeaths(Counters* counters) : counters_(counters) {}

  void started();
  // REQUIRES: answer.end is kLate or kDied.
  void died(const DecoderAnswer& answer, ImageFormat format, std::uint32_t user);

 private:
  Counters* const counters_;
  SeldomLineByUser lines_;
};

}  // namespace millrace
