#include "tests/bench/engine/engine_packed.h"

#include <utility>

#include "tests/bench/engine/engine_rig.h"

namespace millrace::bench {
namespace {

class PackedContests {
 public:
  PackedContests(std::vector<Photo>& photos, const BenchOptions& options, const Report& report)
      : photos_(photos), packed_(packed_photos(photos)), options_(options), report_(report) {}

  struct Row {
    std::string name, baseline, note;
    Recipe recipe;
    Fidelity fidelity = Fidelity::kExact;  // from the packed form; files are made exact
    CpuVariant variant;
  };
  // Beside tensors from the files, at first touch, with the same instructions.
  void run_row(const Row& row) {
    ImageWorkspace forms(JpegPath::kFastest, row.variant), files(JpegPath::kFastest, row.variant);
    const auto play = [&](std::vector<Photo>& photos, ImageWorkspace& workspace, Fidelity fidelity) {
      return [&, fidelity](std::uint32_t round) {
        make_tensors(photos, row.recipe, draw(photos, row.recipe, round), tensor_, workspace, fidelity);
      };
    };
    run({row.name, row.baseline, row.note, play(packed_, forms, row.fidelity), play(photos_, files, Fidelity::kExact)},
        photos_.size(), options_, report_);
  }

 private:
  std::vector<Photo>& photos_;
  std::vector<Photo> packed_;
  const BenchOptions& options_;
  const Report& report_;
  std::vector<std::byte> tensor_ = std::vector<std::byte>(image_bytes(train_recipe(), kOutput).count);
};

void run_inference(std::vector<Photo>& photos, const BenchOptions& options, const Report& report) {
  const Recipe recipe = infer_recipe();
  std::vector<std::byte> tensor(image_bytes(recipe, kOutput).count);
  ImageWorkspace fastest, turbo(JpegPath::kLibjpegTurbo);
  run({"infer.exact.first", "libjpeg-turbo crop and skip, our resampler",
       "shorter side to 256, middle 224, normalised float16",
       [&](std::uint32_t round) { make_tensors(photos, recipe, draw(photos, recipe, round), tensor, fastest); },
       [&](std::uint32_t round) { make_tensors(photos, recipe, draw(photos, recipe, round), tensor, turbo); }},
      photos.size(), options, report);
}

}  // namespace

void run_packed_engine(const BenchOptions& options, const Report& report) {
  std::size_t files = 0;
  std::vector<Photo> photos = load_photos(options.data, files);
  run_inference(photos, options, report);
  PackedContests contests(photos, options, report);
  contests.run_row({"train.exact.packed", "train.exact.first", "the same, from packed forms", train_recipe()});
  contests.run_row(
      {"train.fast.packed", "train.exact.first", "the same, fidelity fast", train_recipe(), Fidelity::kFast});
  contests.run_row({"infer.exact.packed", "infer.exact.first", "the same, from packed forms", infer_recipe()});
  for (const kernels::Target target : kernels::available_targets()) {
    const bool is_asked = target == kernels::Target::kAvx2 || target == kernels::Target::kAvx512Bw;
    if (!is_asked) continue;
    const std::string name(name_of(target));
    contests.run_row({"train.exact.packed." + name,
                      "train.exact.first, both with " + name,
                      "the same, with cpu.target " + name,
                      train_recipe(),
                      Fidelity::kExact,
                      {.target = target}});
  }
}

}  // namespace millrace::bench
