// Times our resamplers for somebody who has another one to compare with, in turns: for each line on standard input
// resamples a picture of noise 20 times, and answers with a line of the thread's processor time, microseconds a
// picture.
//   millrace_bench_resample [avx512|avx2|scalar]  <- "\n"  -> "exact 73.1 fast 44.8"
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <random>
#include <vector>

#include "kernels/cpu/plane_resample.h"
#include "kernels/cpu/resample.h"
#include "kernels/cpu/workspace.h"

namespace {

using namespace millrace::kernels;

constexpr int kPictures = 20;
constexpr Size kSource{520, 520}, kOutput{224, 224};
constexpr ResampleSpec kSpec{.channels = 3,
                             .source = kSource,
                             .target = kOutput,
                             .window = {0, 0, kOutput.width, kOutput.height},
                             .filter = Filter::kBilinear};

template <class Work>
double microseconds(Work&& work) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) * 1e-3;
  };
  const double begin = now();
  for (int i = 0; i < kPictures; ++i) work();
  return (now() - begin) / kPictures;
}

// Both end with a picture of interleaved pixels, as Pillow's resize() does.
class Rounds {
 public:
  explicit Rounds(Target target) : workspace_(target), planes_(target) {
    std::mt19937 random(1);
    for (std::uint8_t& sample : pixels_) sample = static_cast<std::uint8_t>(random());
  }

  double exact() {
    return microseconds([this] {
      resample_image(workspace_.plan(kSpec), picture(), workspace_,
                     {out_.data(), kOutput.width, kOutput.height, 3, 3 * kOutput.width});
    });
  }
  double fast() {
    return microseconds([this] {
      const auto take = [this](int y, const std::uint8_t* row) {
        std::memcpy(out_.data() + std::ptrdiff_t{3} * kOutput.width * y, row, std::size_t{3} * kOutput.width);
      };
      planes_.run(kSpec, Flip::kNone, picture(), row_sink(take));
    });
  }

 private:
  U8View picture() const { return {pixels_.data(), kSource.width, kSource.height, 3, 3 * kSource.width}; }

  Workspace workspace_;
  PlaneResampler planes_;
  std::vector<std::uint8_t> pixels_ = std::vector<std::uint8_t>(std::size_t{3} * kSource.width * kSource.height + 64);
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
    std::printf("exact %.2f fast %.2f\n", exact, fast);
    std::fflush(stdout);
  }
}
