// How decoding of a picture ended, and who may end it before. Values.
#pragma once

#include <cstdint>
#include <functional>

namespace millrace::kernels::raster {

enum class Decoded : std::uint8_t {
  kAll,
  kCutOff,   // the file, or the data by its own word, ends before the picture does
  kBroken,   // data that makes no sense
  kStopped,  // it was not to go on
};

// Asked now and then.
using GoOn = std::function<bool()>;

}  // namespace millrace::kernels::raster
