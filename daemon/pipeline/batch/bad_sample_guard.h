// What an epoch puts up with whose client has chosen no on_error. The default makes up for bad samples, which is right
// as long as they are the exception: a wrong root or a disk that is not mounted makes all of them bad, and must not end
// in an epoch of stand-ins. So a batch without a good sample fails, and the epoch does once too many are bad. A client
// that chooses an on_error gets what it says, and none of this. Thread-bound(control).
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "daemon/model/batch_result.h"

namespace millrace {

class BadSampleGuard {
 public:
  static constexpr std::uint64_t kEnoughToTell = 1'000;  // samples
  static constexpr std::uint64_t kOneIn = 20;            // of them may be bad

  // What a batch of `samples` fails with, none of which is good. The code is the example's.
  static Error none_good(std::uint64_t samples, const SampleFailure& example);

  // A batch has ended: so many samples, and the bad ones of them. What the epoch fails with once they are too many;
  // then `bad` is not empty. The code is the first one's of them.
  std::optional<Error> count(std::uint64_t samples, std::span<const SampleFailure> bad);

 private:
  std::uint64_t samples_ = 0;
  std::uint64_t bad_ = 0;
};

}  // namespace millrace
