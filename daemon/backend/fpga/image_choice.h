// What a card is to be programmed with: for files or for packed coefficients. What it is not programmed for goes to the
// CPU meanwhile. A swap takes seconds, for which those wait that it is made for.
//
//   wants(kJpeg) ──▶ yes                  counted by image, for as long as `hold` at least;
//   wants(kPacked) ──▶ no, not now        the other one then has the card if twice as much was wanted of it
//
// Thread-safe.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>

#include "daemon/backend/fpga/fpga_wire.h"
#include "proto/base/mutex.h"

namespace millrace {

class ImageChoice {
 public:
  using Clock = std::chrono::steady_clock;
  struct Choice {
    FpgaImage image = FpgaImage::kJpeg;
    std::uint32_t swap = 0;  // how often it has changed
    friend bool operator==(const Choice&, const Choice&) = default;
  };

  // `there`: the images that can be had; one at least.
  ImageChoice(std::array<bool, kFpgaImages> there, std::chrono::milliseconds hold, Clock::time_point now);

  // A sample could be made with `image`: whether it can be now.
  bool wants(FpgaImage image, Clock::time_point now) MILLRACE_EXCLUDES(mutex_);
  // A sample has to be made with `image`, whatever that costs others: false, there is none.
  bool insists(FpgaImage image, Clock::time_point now) MILLRACE_EXCLUDES(mutex_);
  Choice now() const MILLRACE_EXCLUDES(mutex_);
  bool is_there(FpgaImage image) const MILLRACE_EXCLUDES(mutex_);

  // A batch of this swap was made: the card is programmed so. Until then it may take a while.
  void note_made(const Choice& choice) MILLRACE_EXCLUDES(mutex_);
  bool has_made(const Choice& choice) const MILLRACE_EXCLUDES(mutex_);

  // The card cannot be programmed with it: it is not tried again, and another one takes its place. false: there is no
  // other, and nothing has changed.
  bool forget(FpgaImage image, Clock::time_point now) MILLRACE_EXCLUDES(mutex_);

 private:
  void swap_to(std::size_t image, Clock::time_point now) MILLRACE_REQUIRES(mutex_);

  const std::chrono::milliseconds hold_;
  mutable Mutex mutex_;
  std::array<bool, kFpgaImages> there_ MILLRACE_GUARDED_BY(mutex_);
  std::array<std::uint64_t, kFpgaImages> wanted_ MILLRACE_GUARDED_BY(mutex_){};  // lately
  Choice choice_ MILLRACE_GUARDED_BY(mutex_);
  std::uint32_t made_ MILLRACE_GUARDED_BY(mutex_) = 0;  // the last swap of which a batch was made
  Clock::time_point swapped_ MILLRACE_GUARDED_BY(mutex_), counted_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace
