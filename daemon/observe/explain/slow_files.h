// Which files of a session took longest of late, in reading or in making, and how much of all that time was theirs.
// What is remembered is of the last 15 to 30 seconds, kMost files each half of it. Thread-bound(control).
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace millrace {

struct SlowFile {
  std::string name;  // as source_name() says: bytes that a client may have chosen
  std::chrono::nanoseconds took{0};
  std::uint32_t times = 0;
};

class SlowFiles {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kSlow{20};  // no file that is faster is remembered
  static constexpr std::chrono::seconds kPart{15};
  static constexpr std::size_t kMost = 8, kLongestName = 1'024;

  struct Sums {
    std::chrono::nanoseconds all{0};
    std::uint64_t images = 0;
    std::vector<SlowFile> slowest{};  // the one that took longest first
  };

  // `name()`: asked only of a slow one.
  template <class Name>
  void note(std::chrono::nanoseconds took, Name name) {
    parts_[0].all += took;
    ++parts_[0].images;
    if (took >= kSlow) remember(name(), took);
  }

  // Once in a while, for what is too long ago to be forgotten.
  void pass(Clock::time_point now) {
    if (now - since_ < kPart) return;
    since_ = now;
    parts_[1] = std::exchange(parts_[0], Sums());
  }

  Sums sums() const {
    Sums sums = parts_[0];
    sums.all += parts_[1].all;
    sums.images += parts_[1].images;
    for (const SlowFile& file : parts_[1].slowest)
      if (!add(sums.slowest, file)) sums.slowest.push_back(file);
    std::ranges::stable_sort(sums.slowest, std::ranges::greater(), &SlowFile::took);
    // Beside that one the others may be no more than a hiccup each.
    std::erase_if(sums.slowest, [most = sums.slowest.empty() ? Sums().all : sums.slowest.front().took](
                                    const SlowFile& file) { return file.took < most / 10; });
    return sums;
  }

 private:
  static bool add(std::vector<SlowFile>& files, const SlowFile& file) {
    const auto known = std::ranges::find(files, file.name, &SlowFile::name);
    if (known == files.end()) return false;
    known->took += file.took;
    known->times += file.times;
    return true;
  }

  void remember(std::string name, std::chrono::nanoseconds took) {
    std::vector<SlowFile>& files = parts_[0].slowest;
    SlowFile file{std::move(name), took, 1};
    if (file.name.size() > kLongestName || add(files, file)) return;
    if (files.size() < kMost) return files.push_back(std::move(file));
    const auto fastest = std::ranges::min_element(files, std::ranges::less(), &SlowFile::took);
    if (fastest->took < took) *fastest = std::move(file);
  }

  std::array<Sums, 2> parts_{};  // the one of now first
  Clock::time_point since_ = Clock::now();
};

}  // namespace millrace
