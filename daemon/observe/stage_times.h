// Lane time by stage of making images: decoding, resampling, each step of augmentation, packing for the cache. Values.
//
// Steps that change each pixel by itself are done together with what follows: their time is told of the last of them.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace millrace {

// daemon/doc/costs.md says what each is.
#define MILLRACE_STAGES(row)                                                                                        \
  row(kDecode, "decode") row(kResample, "resample") row(kCopy, "copy") row(kPack, "pack") row(kErasing, "erasing")  \
      row(kInvert, "invert") row(kPosterize, "posterize") row(kSolarize, "solarize") row(kBrightness, "brightness") \
          row(kContrast, "contrast") row(kSaturation, "saturation") row(kSharpness, "sharpness") row(kGrey, "grey") \
              row(kAutocontrast, "autocontrast") row(kEqualize, "equalize") row(kHue, "hue")                        \
                  row(kFlipHorizontal, "flip_horizontal") row(kFlipVertical, "flip_vertical")                       \
                      row(kQuarterTurns, "quarter_turns") row(kAffine, "affine") row(kPerspective, "perspective")   \
                          row(kErase, "erase") row(kGaussianBlur, "gaussian_blur") row(kPillowBlur, "pillow_blur")  \
                              row(kSolarizeAdd, "solarize_add") row(kMix, "mix")

enum class Stage : std::uint8_t {
#define MILLRACE_STAGE(id, name) id,
  MILLRACE_STAGES(MILLRACE_STAGE)
#undef MILLRACE_STAGE
};

// As statistics name them, for good.
inline constexpr std::array kStageNames{
#define MILLRACE_STAGE(id, name) std::string_view(name),
    MILLRACE_STAGES(MILLRACE_STAGE)
#undef MILLRACE_STAGE
};
inline constexpr std::size_t kStages = kStageNames.size();

class StageTimes {
 public:
  std::chrono::nanoseconds& of(Stage stage) { return times_[static_cast<std::size_t>(stage)]; }
  std::chrono::nanoseconds of(Stage stage) const { return times_[static_cast<std::size_t>(stage)]; }
  std::chrono::nanoseconds sum() const {
    std::chrono::nanoseconds all{0};
    for (const std::chrono::nanoseconds time : times_) all += time;
    return all;
  }
  StageTimes& operator+=(const StageTimes& more) {
    for (std::size_t i = 0; i < kStages; ++i) times_[i] += more.times_[i];
    return *this;
  }

 private:
  std::array<std::chrono::nanoseconds, kStages> times_{};
};

}  // namespace millrace
