// What a card's sensors say, as XRT tells it. Thread-bound(the reader's).
#pragma once

#include <xrt/xrt_device.h>

#include <cstdint>
#include <string>

namespace millrace::fpga {

// 0: there is no such sensor.
struct Sensors {
  std::int32_t celsius = 0;     // of the hottest place that has one
  std::int32_t milliwatts = 0;  // of the whole card
};

// Takes milliseconds on a card.
Sensors read_sensors(const xrt::device& device);

// Of XRT's JSON texts; what is not as expected is 0.
std::int32_t hottest_in(const std::string& thermal);
std::int32_t milliwatts_in(const std::string& electrical);

}  // namespace millrace::fpga
