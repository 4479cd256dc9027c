// Times our resamplers for somebody who has another one to compare with, in turns: for each line on standard input
// resamples 20 pictures of noise in each way, and answers with a line of the thread's processor time, microseconds a
// picture. Pictures are 519x519 and 521x521 by turns, so that who keeps the weights of one picture has none for the
// next. `exact` and `fast` make the weights of each picture anew, as crops of random sizes need them; `.kept` have
// those of both sizes at hand.
//   millrace_bench_resample [avx512|avx512bw|avx2|scalar]  <- "\n"  -> "exact 84.1 fast 51.8 exact.kept 73.1 fast.kept 44.8"
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <random>
#include <vector>

#include "kernels/cpu/plane/plane_resample.h"
#include "kernels/cpu/resample.h"
#include "kernels/cpu/workspace.h"

namespace {

using namespace millrace::kernels;

constexpr int kPictures = 20;
constexpr int kSides[] = {519, 521};
constexpr Size kOutput{224, 224};

constexpr ResampleSpec spec_of(int side) {
  return {.channels = 3,
          .source = {side, side},
          .target = kOutput,
          .window = {0, 0, kOutput.width, kOutput.height},
          .filter = Filter::kBilinear};
}

// work(side), for one side after the other.
template <class Work>
double microseconds(Work&& work) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) * 1e-3;
  };
  const double begin = now();
  for (int i = 0; i < kPictures; ++i) work(kSides[i % 2]);
  return (now() - begin) / kPictures;
}

// All end with a picture of interleaved pixels, as Pillow's resize() does.
class Rounds {
 public:
  explicit Rounds(Target target)
      : kept_(target), made_(target, 0), kept_planes_{PlaneResampler(target), PlaneResampler(target)}, planes_(target) {
    std::mt19937 random(1);
    for (std::uint8_t& sample : pixels_) sample = static_cast<std::uint8_t>(random());
  }

  double exact_kept() { return exact(kept_); }
  double exact() { return exact(made_); }
  double fast_kept() {
    return microseconds([this](int side) { fast(kept_planes_[side == kSides[0] ? 0 : 1], side); });
  }
  double fast() {
    return microseconds([this](int side) { fast(planes_, side); });
  }

 private:
  double exact(Workspace& workspace) {
    return microseconds([&](int side) {
      resample_image(workspace.plan(spec_of(side)), picture(side), workspace,
                     {out_.data(), kOutput.width, kOutput.height, 3, 3 * kOutput.width});
    });
  }
  void fast(PlaneResampler& planes, int side) {
    const auto take = [this](int y, const std::uint8_t* row) {
      std::memcpy(out_.data() + std::ptrdiff_t{3} * kOutput.width * y, row, std::size_t{3} * kOutput.width);
    };
    planes.run(spec_of(side), Flip::kNone, picture(side), row_sink(take));
  }
  U8View picture(int side) const { return {pixels_.data(), side, side, 3, 3 * side}; }

  Workspace kept_, made_;  // `made_` has no room for weights beyond a picture's
  PlaneResampler kept_planes_[2], planes_;
  std::vector<std::uint8_t> pixels_ = std::vector<std::uint8_t>(std::size_t{3} * kSides[1] * kSides[1] + 64);
  std::vector<std::uint8_t> out_ = std::vector<std::uint8_t>(std::size_t{3} * kOutput.width * kOutput.height);
};

}  // namespace

int main(int argc, char** argv) {
  Target target = best_target();
  for (const Target one : available_targets()) {
    if (argc > 1 && name_of(one) == argv[1]) target = one;
  }
  if (argc > 1 && name_of(target) != argv[1]) return std::fprintf(stderr, "this processor lacks %s\n", argv[1]), 2;
  Rounds rounds(target);
  while (std::getchar() != EOF) {
    const double exact = rounds.exact(), fast = rounds.fast();
    const double exact_kept = rounds.exact_kept(), fast_kept = rounds.fast_kept();
    std::printf("exact %.2f fast %.2f exact.kept %.2f fast.kept %.2f\n", exact, fast, exact_kept, fast_kept);
    std::fflush(stdout);
  }
}
