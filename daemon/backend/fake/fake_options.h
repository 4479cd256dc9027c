// How the fake device behaves: "delay_us=200,fail_every=7,lose_after=20,back_after=4,depth=4,instant=1,first=1", all of them
// optional.
// Value.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "proto/base/result.h"

namespace millrace {

struct FakeOptions {
  std::chrono::microseconds delay{0};  // from submission to completion at the least; twice that for every second job
  std::uint64_t fail_every = 0;        // every n-th sample fails; 0: none
  std::uint64_t lose_after = 0;        // the device is lost once it has made so many samples; 0: never
  std::uint64_t back_after = 0;        // and ready again once it has refused so many more; 0: never
  std::uint32_t depth = 4;
  bool first = false;    // takes JPEG files without being asked by name, before the processor, as a GPU does
  bool instant = false;  // nothing is decoded, slot memory stays as it is: for measuring what is around the device

  // kInvalid naming the key that is unknown or has no number.
  static Result<FakeOptions> parse(std::string_view text);
};

}  // namespace millrace
