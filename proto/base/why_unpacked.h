// Why the daemon keeps no packed form of an image: the one definition, for the records in shared memory, the library and
// the daemon. A number keeps its meaning for ever; new reasons get new numbers.
#pragma once

#include <cstdint>

namespace millrace {

enum class WhyUnpacked : std::uint8_t {
  kNotSaid = 0,      // a packed form or a tensor is kept, or nobody has decided yet
  kNotJpeg = 1,      // only JPEG files have a packed form
  kIsPacked = 2,     // the file is a packed one itself
  kSwitchedOff = 3,  // `cache.packed` is false
  kNoRoom = 4,       // neither cache.memory nor cache.disk has room that this image is worth
  kNoForm = 5,  // a JPEG file that cannot be packed: of a rare kind, damaged, or slower than limits.time_milliseconds
  kNoProcess = 6,  // all decoder processes were busy or gone
};

}  // namespace millrace
