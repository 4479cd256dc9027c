// Several tensors of one image on the host executor: each is what a request for it alone makes.
#include <algorithm>

#include "daemon/backend/cpu/making/pack_jpeg.h"
#include "kernels/cuda/plan/host_run.h"
#include "tests/support/jpeg/random_jpeg.h"
#include "tests/support/pictures/test_data.h"
#include "tests/support/pictures/test_images.h"
#include "tests/support/rounds.h"
#include "tests/unit/kernels/cuda/reconstruct_rig.h"
#include "tests/unit/kernels/jpeg/jpeg_rig.h"

namespace millrace::kernels::cuda {
namespace {

using kernels::Box;
using kernels::Filter;
using kernels::Flip;
using kernels::Orientation;
using kernels::Size;

constexpr Filter kViewFilters[] = {Filter::kBox, Filter::kBilinear, Filter::kBicubic, Filter::kLanczos,
                                   Filter::kHamming};

ViewRequest random_view(std::mt19937& random, Size turned) {
  ViewRequest view{.crop = random_box(random, turned),
                   .flip = below(random, 2) == 0 ? Flip::kNone : Flip::kHorizontal,
                   .size = {1 + below(random, 48), 1 + below(random, 48)},
                   .filter = kViewFilters[static_cast<std::size_t>(below(random, 5))]};
  if (below(random, 3) == 0) {
    view.resized = {view.size.width + below(random, 9), view.size.height + below(random, 9)};
    view.window = {below(random, view.resized.width - view.size.width + 1),
                   below(random, view.resized.height - view.size.height + 1), view.size.width, view.size.height};
  }
  return view;
}

// One image, its views, and where it lies.
struct ViewedImage {
  std::vector<std::uint8_t> bytes;
  Size size;
  Orientation orientation = Orientation::kUpright;
  ImageKind kind = ImageKind::kJpegFile;
  std::vector<ViewRequest> views;
};

struct ViewedBatch {
  std::vector<ViewedImage> images;
  std::vector<std::uint8_t> encoded;
  std::vector<ImageRequest> requests;

  // `one_by_one`: a request for each view, in their order.
  void lay_out(bool one_by_one) {
    encoded.clear();
    requests.clear();
    for (const ViewedImage& image : images) {
      const ImageRequest whole{.file_untrusted = image.bytes,
                               .at = encoded.size(),
                               .orientation = image.orientation,
                               .kind = image.kind,
                               .views = image.views};
      encoded.insert(encoded.end(), image.bytes.begin(), image.bytes.end());
      for (std::size_t i = 0; i < (one_by_one ? image.views.size() : 1); ++i) {
        requests.push_back(whole);
        if (one_by_one) requests.back().views = whole.views.subspan(i, 1);
      }
    }
  }
};

std::vector<std::uint8_t> packed_bytes(const File& file, Size size) {
  static kernels::jpeg::Decoder decoder;
  static kernels::packed::Encoder encoder;
  DecodingInLane libraries;
  const SourceInfo info{ImageFormat::kJpeg,
                        {static_cast<std::uint32_t>(size.width), static_cast<std::uint32_t>(size.height)}};
  auto packed = pack_jpeg(file, info, {}, 0, decoder, encoder, Clock::now() + std::chrono::minutes(10), libraries, 0);
  REQUIRE(packed);
  return *std::move(packed);
}

std::vector<std::vector<std::byte>> tensors_of(const HostBatch& made, const BatchPlan& plan) {
  std::vector<std::vector<std::byte>> tensors;
  for (const TensorPlace& place : plan.places) {
    const auto begin = made.tensors.begin() + static_cast<std::ptrdiff_t>(place.at);
    tensors.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(place.bytes));
  }
  return tensors;
}

std::vector<std::uint8_t> with_padding(const File& file) {
  const auto bytes = file_bytes(file);
  return {bytes.begin(), bytes.end()};
}

TEST_CASE("views of an image are decoded once, and each is the tensor that it is alone", "[cuda][views]") {
  std::mt19937 random(61);
  const auto drawn = rounds(6);
  for (int round = 0; round < drawn; ++round) {
    const BatchRecipe recipe{.store = {.dtype = round % 2 == 0 ? DType::kUint8 : DType::kFloat32,
                                       .layout = round % 3 == 0 ? Layout::kNhwc : Layout::kNchw}};
    ViewedBatch batch;
    for (int i = 0; i < 6; ++i) {
      const Size size{40 + below(random, 160), 40 + below(random, 160)};
      const File file =
          make_jpeg({.pixels = make_pixels(size.width, size.height, 3, static_cast<std::uint32_t>(below(random, 1000))),
                     .optimise = below(random, 2) == 0});
      ViewedImage image{.bytes = with_padding(file), .size = size};
      image.orientation = static_cast<Orientation>(1 + below(random, 8));
      if (i % 3 == 2) {
        image.bytes = packed_bytes(file, size);
        image.kind = ImageKind::kPacked;
      }
      for (int views = 1 + below(random, 5); views > 0; --views)
        image.views.push_back(random_view(random, oriented(size, image.orientation)));
      batch.images.push_back(std::move(image));
    }
    Planner together(recipe, {.wanted_tiles = 24}), alone(recipe, {.wanted_tiles = 24});
    HostRunner runner, other;

    batch.lay_out(false);
    const BatchPlan& plan = together.plan(batch.requests);
    const HostBatch made = runner.run(plan, batch.encoded, static_cast<std::uint32_t>(round));
    REQUIRE(plan.scans == 4);
    for (const std::string_view refusal : plan.refusals) REQUIRE(refusal == "");
    const auto of_views = tensors_of(made, plan);

    batch.lay_out(true);
    const BatchPlan& single = alone.plan(batch.requests);
    const HostBatch expected = other.run(single, batch.encoded, static_cast<std::uint32_t>(round));
    for (std::size_t job = 0; job < plan.jobs.size(); ++job)
      REQUIRE(made.statuses[plan.jobs[job].decoded] == Status::kDone);
    REQUIRE((of_views == tensors_of(expected, single)));
  }
}

TEST_CASE("an image of which one view cannot be made is refused, and leaves nothing behind", "[cuda][views]") {
  const File file = make_jpeg({.pixels = make_pixels(90, 70, 3, 5)});
  const std::vector<ViewRequest> good{{.crop = {0, 0, 50, 50}, .size = {20, 20}},
                                      {.crop = {9, 9, 40, 40}, .size = {8, 8}}};
  std::vector<ViewRequest> bad = good;
  bad.push_back({.crop = {80, 0, 50, 50}, .size = {30, 30}, .filter = Filter::kLanczos});
  const auto bytes = with_padding(file);
  const std::vector<ImageRequest> requests{{.file_untrusted = bytes, .views = bad},
                                           {.file_untrusted = bytes, .views = good}};
  Planner planner({.store = {.dtype = DType::kUint8}});
  HostRunner runner;

  const BatchPlan& plan = planner.plan(requests);

  REQUIRE(plan.refusals[0] == "the crop lies outside the image");
  REQUIRE(plan.refusals[1] == "");
  REQUIRE(plan.jobs.size() == 2);
  REQUIRE(plan.weights.empty());
  REQUIRE(std::ranges::all_of(plan.tiles, [](const Tile& tile) { return tile.image < 2; }));
  REQUIRE(plan.places[0].at == 3 * (20 * 20 + 8 * 8 + 30 * 30));  // the refused one's tensors have their room
  REQUIRE(plan.tensors_bytes == plan.places[1].at + 3 * 8 * 8);
  REQUIRE(runner.run(plan, bytes, 1).statuses[0] == Status::kDone);
}

TEST_CASE("an image whose views need more weights than one may have is refused before they are computed",
          "[cuda][views]") {
  const File file = make_jpeg({.pixels = make_pixels(20'000, 8, 1, 5)});
  const auto bytes = with_padding(file);
  const ViewRequest wide{.crop = {0, 0, 20'000, 8}, .size = {16, 8}, .filter = Filter::kLanczos};  // 120,000 of them
  const std::vector<ViewRequest> many(3, wide);
  const std::vector<ImageRequest> requests{{.file_untrusted = bytes, .views = many},
                                           {.file_untrusted = bytes, .views = {many.data(), 1}}};
  Planner planner({.store = {.dtype = DType::kUint8}});

  const BatchPlan& plan = planner.plan(requests);

  REQUIRE(plan.refusals[0] == "larger tables of weights than an image may have");
  REQUIRE(plan.refusals[1] != plan.refusals[0]);
  REQUIRE(plan.weights.size() <= kMostWeightsOfImage);
}

TEST_CASE("what is augmented is exact where the batch is fast", "[cuda][views]") {
  const File file = make_jpeg({.pixels = make_pixels(150, 130, 3, 3)});
  const auto bytes = with_padding(file);
  const std::vector<Operation> inverted{{.step = Step::kInvert}};
  const ViewRequest plain{.crop = {3, 5, 120, 100}, .size = {40, 40}};
  std::vector<ViewRequest> views{plain, plain};
  views[1].operations = inverted;
  const std::vector<ImageRequest> requests{{.file_untrusted = bytes, .views = views}};
  std::vector<std::vector<std::byte>> made[2];
  for (const bool fast : {false, true}) {
    Planner planner({.store = {.dtype = DType::kUint8},
                     .fidelity = fast ? kernels::cuda::Fidelity::kFast : kernels::cuda::Fidelity::kExact});
    HostRunner runner;
    const BatchPlan& plan = planner.plan(requests);
    made[fast ? 1 : 0] = tensors_of(runner.run(plan, bytes, 2), plan);
  }
  REQUIRE((made[0] == made[1]));
  for (std::size_t i = 0; i < made[0][0].size(); ++i) REQUIRE((made[0][0][i] ^ made[0][1][i]) == std::byte{255});
}

TEST_CASE("a view that meets damage makes all views of its image the CPU's", "[cuda][views]") {
  const File file = make_jpeg({.pixels = make_pixels(64, 640, 3, 7)});
  auto bytes = with_padding(file);
  std::fill(bytes.end() - 60, bytes.end() - 10, std::uint8_t{0x5A});  // the last rows
  const std::vector<ViewRequest> views{{.crop = {0, 0, 64, 64}, .size = {32, 32}},
                                       {.crop = {0, 560, 64, 80}, .size = {32, 32}}};
  const std::vector<ImageRequest> requests{{.file_untrusted = bytes, .views = {views.data(), 1}},
                                           {.file_untrusted = bytes, .views = views}};
  Planner planner({.store = {.dtype = DType::kUint8}});
  HostRunner runner;

  const BatchPlan& plan = planner.plan(requests);
  REQUIRE(plan.jobs.size() == 3);
  const HostBatch made = runner.run(plan, bytes, 3);

  REQUIRE(made.statuses[0] == Status::kDone);
  REQUIRE(made.statuses[plan.jobs[1].decoded] != Status::kDone);
  REQUIRE(plan.jobs[2].decoded == 1);
}

TEST_CASE("a file with restart markers is left to the CPU where views leave blocks between them", "[cuda][views]") {
  const File file = make_jpeg({.pixels = make_pixels(200, 200, 3, 9), .restart_interval = 4});
  const auto bytes = with_padding(file);
  const ViewRequest corner{.crop = {0, 0, 40, 40}, .size = {16, 16}},
      other{.crop = {150, 150, 50, 50}, .size = {16, 16}}, all{.crop = {0, 0, 200, 200}, .size = {16, 16}};
  const std::vector<ViewRequest> apart{corner, other}, held{corner, other, all};
  const std::vector<ImageRequest> requests{{.file_untrusted = bytes, .views = apart},
                                           {.file_untrusted = bytes, .views = held}};
  Planner planner({.store = {.dtype = DType::kUint8}});

  const BatchPlan& plan = planner.plan(requests);

  REQUIRE(plan.refusals[0] == "a file with restart markers whose views leave blocks between them");
  REQUIRE(plan.refusals[1] == "");
}

}  // namespace
}  // namespace millrace::kernels::cuda
