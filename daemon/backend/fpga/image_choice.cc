#include "daemon/backend/fpga/image_choice.h"

namespace millrace {
namespace {

constexpr std::uint64_t kFew = 64;  // samples: for fewer than that no card is programmed

std::size_t number(FpgaImage image) {
  return static_cast<std::size_t>(image);
}

}  // namespace

ImageChoice::ImageChoice(std::array<bool, kFpgaImages> there, std::chrono::milliseconds hold, Clock::time_point now)
    : hold_(hold), there_(there), swapped_(now), counted_(now) {
  if (!there_[number(FpgaImage::kJpeg)]) choice_.image = FpgaImage::kPacked;
}

bool ImageChoice::wants(FpgaImage image, Clock::time_point now) {
  MutexLock lock(mutex_);
  const std::size_t wanted = number(image), present = number(choice_.image);
  if (!there_[wanted]) return false;
  ++wanted_[wanted];
  if (now - counted_ >= hold_) {  // what was long ago counts less and less
    for (std::uint64_t& count : wanted_) count /= 2;
    counted_ = now;
  }
  if (wanted == present) return true;
  const bool is_due = now - swapped_ >= hold_ && wanted_[wanted] >= kFew && wanted_[wanted] >= 2 * wanted_[present];
  if (is_due) swap_to(wanted, now);
  return is_due;
}

bool ImageChoice::insists(FpgaImage image, Clock::time_point now) {
  MutexLock lock(mutex_);
  const std::size_t wanted = number(image);
  if (!there_[wanted]) return false;
  ++wanted_[wanted];
  if (choice_.image != image) swap_to(wanted, now);
  return true;
}

ImageChoice::Choice ImageChoice::now() const {
  MutexLock lock(mutex_);
  return choice_;
}

bool ImageChoice::is_there(FpgaImage image) const {
  MutexLock lock(mutex_);
  return there_[number(image)];
}

void ImageChoice::note_made(const Choice& choice) {
  MutexLock lock(mutex_);
  if (choice.swap > made_) made_ = choice.swap;
}

bool ImageChoice::has_made(const Choice& choice) const {
  MutexLock lock(mutex_);
  return choice.swap <= made_;
}

bool ImageChoice::forget(FpgaImage image, Clock::time_point now) {
  MutexLock lock(mutex_);
  const std::size_t forgotten = number(image);
  for (std::size_t other = 0; other < kFpgaImages; ++other) {
    if (other == forgotten || !there_[other]) continue;
    there_[forgotten] = false;
    if (choice_.image == image) swap_to(other, now);
    return true;
  }
  return false;
}

void ImageChoice::swap_to(std::size_t image, Clock::time_point now) {
  choice_ = {.image = static_cast<FpgaImage>(image), .swap = choice_.swap + 1};
  wanted_ = {};
  swapped_ = counted_ = now;
}

}  // namespace millrace
