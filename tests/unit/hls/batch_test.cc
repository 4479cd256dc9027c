// Whole batches of decode_jpeg as g++ compiles it, from files to tensors, beside libjpeg-turbo and the reference
// functions: photographs, odd files, hostile ones, random streams; every layout and element.
#include <algorithm>

#include "hls/decoder/jpeg/decode_jpeg.h"
#include "tests/support/jpeg/random_jpeg.h"
#include "tests/support/pictures/test_data.h"
#include "tests/support/pictures/test_images.h"
#include "tests/support/rounds.h"
#include "tests/unit/hls/rig.h"

namespace millrace {
namespace {

struct Verdicts {
  int done = 0, refused = 0, damaged = 0, extreme = 0;
};

// Every tensor that is done is libjpeg-turbo's.
Verdicts check(HlsRunner& runner, const hls::BatchRecipe& recipe, const std::vector<HlsRequest>& requests) {
  Verdicts verdicts;
  const auto images = runner.run(requests);
  for (std::size_t i = 0; i < images.size(); ++i) {
    CAPTURE(i, images[i].refusal, static_cast<int>(images[i].outcome.reason));
    verdicts.refused += !images[i].refusal.empty();
    if (!images[i].refusal.empty()) continue;
    verdicts.damaged += images[i].outcome.reason == hls::Reason::kDamaged;
    verdicts.extreme += images[i].outcome.reason == hls::Reason::kExtreme;
    REQUIRE(images[i].outcome.reason != hls::Reason::kBadDescriptor);
    REQUIRE(images[i].outcome.reason != hls::Reason::kNotHere);
    REQUIRE(images[i].outcome.reason != hls::Reason::kTooLong);
    if (!images[i].is_done()) continue;
    ++verdicts.done;
    REQUIRE((images[i].tensor == expected_tensor(requests[i], recipe)));
  }
  return verdicts;
}

kernels::Flip random_flip(std::mt19937& random) {
  return below(random, 2) == 0 ? kernels::Flip::kNone : kernels::Flip::kHorizontal;
}

// A window of a resized crop.
HlsRequest random_request(const File& file, std::mt19937& random) {
  HlsRequest request{.file = &file, .crop = random_box(random, jpeg_size(file).value_or(kernels::Size{8, 8}))};
  request.resized = {1 + request.crop.width / 10 + below(random, 80), 1 + request.crop.height / 10 + below(random, 80)};
  request.window = below(random, 2) == 0 ? kernels::whole(request.resized) : random_box(random, request.resized);
  request.flip = random_flip(random);
  return request;
}

TEST_CASE("photographs become libjpeg-turbo's tensors", "[hls][batch]") {
  const auto folder = test_data("photos");
  if (!folder) return;
  const auto files = files_in(*folder);
  const hls::BatchRecipe recipe{.store = {.dtype = kernels::DType::kFloat16}};
  HlsRunner runner(recipe, ::decode_jpeg);
  std::mt19937 random(1);
  const auto every = static_cast<std::size_t>(std::max(1, 10 / rounds(1)));
  int done = 0, all = 0;
  for (std::size_t first = 0; first < files.size(); first += 16 * every) {
    std::vector<HlsRequest> requests;
    for (std::size_t i = first; i < std::min(files.size(), first + 16 * every); i += every)
      requests.push_back(whole_tensor(files[i].second, random_box(random, *jpeg_size(files[i].second)), {64, 64},
                                      random_flip(random)));
    CAPTURE(first, files[first].first);

    const Verdicts verdicts = check(runner, recipe, requests);

    done += verdicts.done;
    all += static_cast<int>(requests.size());
    REQUIRE(verdicts.damaged == 0);
  }
  CAPTURE(done, all);
  REQUIRE(done == all);
}

TEST_CASE("made pictures of every sampling, with restarts or not, become libjpeg-turbo's tensors", "[hls][batch]") {
  struct Made {
    int h, v, restart_interval;
    std::uint32_t channels;
  };
  constexpr Made kMade[] = {{1, 1, 0, 3}, {2, 1, 0, 3}, {1, 2, 0, 3}, {2, 2, 0, 3}, {4, 1, 0, 3}, {1, 1, 0, 1},
                            {1, 1, 5, 3}, {2, 1, 7, 3}, {2, 2, 1, 3}, {4, 1, 3, 3}, {1, 1, 9, 1}, {2, 2, 9000, 3}};
  std::mt19937 random(2);
  for (int round = 0; round < rounds(6); ++round) {
    const auto filter = static_cast<kernels::Filter>(round % 6);
    const hls::BatchRecipe recipe{.filter = filter};
    std::vector<File> files;
    for (const Made& made : kMade) {
      const int most = round % 2 == 0 ? 200 : 20;
      files.push_back(
          make_jpeg({.pixels = make_pixels(static_cast<std::uint32_t>(5 + below(random, most)),
                                           static_cast<std::uint32_t>(5 + below(random, most)), made.channels, 5),
                     .h_samp = made.h,
                     .v_samp = made.v,
                     .restart_interval = made.restart_interval,
                     .optimise = round % 3 != 0}));
    }
    HlsRunner runner(recipe, ::decode_jpeg);
    std::vector<HlsRequest> requests;
    for (const File& file : files) requests.push_back(random_request(file, random));
    CAPTURE(round);

    const Verdicts verdicts = check(runner, recipe, requests);

    REQUIRE(verdicts.done == static_cast<int>(files.size()));
  }
}

TEST_CASE("every element type, layout, channel order and range is stored as the reference has it", "[hls][batch]") {
  std::mt19937 random(3);
  const File colour = make_jpeg({.pixels = make_pixels(90, 70, 3, 4)});
  const File grey = make_jpeg({.pixels = make_pixels(61, 47, 1, 4)});
  for (const auto dtype :
       {kernels::DType::kUint8, kernels::DType::kFloat16, kernels::DType::kBfloat16, kernels::DType::kFloat32}) {
    for (const auto layout : {kernels::Layout::kNchw, kernels::Layout::kNhwc}) {
      for (const auto order :
           {kernels::ChannelOrder::kRgb, kernels::ChannelOrder::kBgr, kernels::ChannelOrder::kGrey}) {
        for (const bool normalised : {false, true}) {
          hls::BatchRecipe recipe{.store = {.dtype = dtype, .layout = layout, .channels = order}};
          if (normalised && dtype != kernels::DType::kUint8)
            recipe.store.normalise = kernels::Normalise{{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};
          HlsRunner runner(recipe, ::decode_jpeg);
          std::vector<HlsRequest> requests;
          for (int i = 0; i < 6; ++i) requests.push_back(random_request(i % 3 == 0 ? grey : colour, random));
          CAPTURE(static_cast<int>(dtype), static_cast<int>(layout), static_cast<int>(order), normalised);

          REQUIRE(check(runner, recipe, requests).done == 6);
        }
      }
    }
  }
}

TEST_CASE("the pass that is first where it matters is first, and mirrored tensors are mirrored", "[hls][batch]") {
  const File tall = make_jpeg({.pixels = make_pixels(120, 600, 3, 7)});
  HlsRequest request = whole_tensor(tall, {3, 5, 110, 590}, {90, 40});
  for (const auto order : {kernels::PassOrder::kAsPillow13, kernels::PassOrder::kColumnsFirst}) {
    for (const auto filter : {kernels::Filter::kBilinear, kernels::Filter::kHamming}) {
      for (const kernels::Flip flip : {kernels::Flip::kNone, kernels::Flip::kHorizontal}) {
        const hls::BatchRecipe recipe{.filter = filter, .order = order};
        HlsRunner runner(recipe, ::decode_jpeg);
        request.flip = flip;

        REQUIRE(check(runner, recipe, {request}).done == 1);
      }
    }
  }
}

TEST_CASE("a photograph of 12 megapixels becomes libjpeg-turbo's tensor", "[hls][batch]") {
  const File large = make_jpeg({.pixels = make_pixels(4000, 3000, 3, 5), .quality = 80});
  const hls::BatchRecipe recipe;
  HlsRunner runner(recipe, ::decode_jpeg);

  REQUIRE(check(runner, recipe, {whole_tensor(large, {0, 0, 4000, 3000}, {224, 224})}).done == 1);
}

TEST_CASE("random streams become libjpeg-turbo's tensors, and damaged ones never other ones", "[hls][batch]") {
  std::mt19937 random(5);
  const hls::BatchRecipe recipe;
  HlsRunner runner(recipe, ::decode_jpeg);
  Verdicts sum;
  for (int round = 0; round < rounds(40); ++round) {
    std::vector<File> files;
    for (int i = 0; i < 6; ++i) {
      const auto kind = i % 2 == 0 ? JpegDraw::Kind::kPlain : JpegDraw::Kind::kAny;
      const JpegFile file = write_jpeg(draw_jpeg({.kind = kind}, random));
      files.push_back(file.bytes);
      files.push_back(damage(file, static_cast<JpegDamage>(below(random, kJpegDamages)), random));
    }
    std::vector<HlsRequest> requests;
    for (const File& file : files) requests.push_back(random_request(file, random));
    CAPTURE(round);

    const Verdicts verdicts = check(runner, recipe, requests);

    sum.done += verdicts.done;
    sum.damaged += verdicts.damaged;
  }
  REQUIRE(sum.done > rounds(40));
  REQUIRE(sum.damaged > rounds(40));
}

TEST_CASE("blocks out of the ordinary are said to be", "[hls][batch]") {
  std::mt19937 random(8);
  const hls::BatchRecipe recipe;
  HlsRunner runner(recipe, ::decode_jpeg);
  int extreme = 0;
  for (int round = 0; round < rounds(10); ++round) {
    const File file = write_jpeg(draw_jpeg({.range = JpegDraw::Range::kWild, .width = 60, .height = 50}, random)).bytes;
    extreme += check(runner, recipe, {random_request(file, random)}).extreme;
  }
  REQUIRE(extreme > 0);
}

TEST_CASE("hostile and odd files give libjpeg-turbo's tensors or none", "[hls][batch]") {
  std::mt19937 random(6);
  const hls::BatchRecipe recipe;
  HlsRunner runner(recipe, ::decode_jpeg);
  for (const char* const folder : {"bad-jpeg", "jpeg-variants"}) {
    const auto data = test_data(folder);
    if (!data) continue;
    int done = 0;
    for (const auto& [name, file] : files_in(*data)) {
      const auto size = jpeg_size(file);
      if (!size || static_cast<std::int64_t>(size->width) * size->height > 1'000'000) continue;
      CAPTURE(name);
      done += check(runner, recipe, {random_request(file, random)}).done;
    }
    CAPTURE(folder);
    REQUIRE(done > 0);
  }
}

}  // namespace
}  // namespace millrace
