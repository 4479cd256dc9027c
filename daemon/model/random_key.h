// What every random number of a sample is a function of. Value.
#pragma once

#include <cstdint>

#include "proto/base/ids.h"

namespace millrace {

struct RandomKey {
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  SampleId sample{};
  std::uint16_t view = 0;  // of the sample's, counted from 0
  friend bool operator==(const RandomKey&, const RandomKey&) = default;
};

}  // namespace millrace
