// Several views of each sample in one slot, as a client sees them: each what its recipe makes alone, whatever becomes of
// bad samples, in epochs as in batches asked for one by one.
#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>

#include "millrace/client.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/system/support/daemon.h"
#include "tests/system/support/need.h"

namespace millrace {
namespace {

constexpr std::uint32_t kViewsImages = 7;

Recipe large() {
  Recipe recipe = Recipe::train(48);
  recipe.steps = {{.probability = 0.5F, .kind = steps::Simple::kInvert}};
  return recipe;
}

Recipe small() {
  return {.resize = LongerSide{20}, .pad = Pad{.to = Size{23, 21}, .fill = {9, 8, 7}}};
}

struct ViewsMill {
  explicit ViewsMill(const Recipe& recipe)
      : paths(write_image_folder(folder / "pictures", {.images = kViewsImages, .classes = 2})),
        daemon({.roots = {folder.path()}}),
        session(need(
            daemon.connect().open_session({.name = "views", .slots = 6, .batch = kViewsImages, .recipe = recipe}))) {}

  BatchRequest request(const Recipe& recipe, OnError on_error = OnError::kFail) const {
    BatchRequest wanted{.recipe = recipe, .seed = 11, .epoch = 2, .on_error = on_error};
    for (std::size_t i = 0; i < paths.size(); ++i)
      wanted.samples.push_back({.source = Path{paths[i]}, .id = 100 + i, .label = static_cast<std::int64_t>(i)});
    return wanted;
  }
  Batch make(BatchRequest wanted) { return need(session.wait(need(session.submit(std::move(wanted))))); }
  void spoil(std::size_t image) const { std::ofstream(paths[image], std::ios::trunc) << "no picture"; }

  TempFolder folder;
  std::vector<std::string> paths;
  Daemon daemon;
  Session session;
};

using Shape = std::vector<std::uint64_t>;

// One image of a view.
std::vector<std::byte> image_of(const ViewTensor& view, std::size_t index) {
  const auto pixels = view.data.subspan(index * view.strides[0], view.strides[0]);
  return {pixels.begin(), pixels.end()};
}

std::vector<std::byte> pixels_of(const TensorView& tensor, std::size_t index) {
  return {tensor.pixels(index).begin(), tensor.pixels(index).end()};
}

TEST_CASE("each view of a batch is a tensor of its own, of the pixels that its recipe makes alone", "[system]") {
  const Recipe recipe = Recipe::of_views({large(), large(), small()});
  ViewsMill mill(recipe);

  const Batch batch = mill.make(mill.request(recipe));
  const Batch first = mill.make(mill.request(large())), last = mill.make(mill.request(small()));

  const std::span<const ViewTensor> views = batch.tensor.views();
  REQUIRE(views.size() == 3);
  REQUIRE(views[0].shape == Shape{kViewsImages, 3, 48, 48});
  REQUIRE(views[1].shape == views[0].shape);
  REQUIRE(views[2].shape == Shape{kViewsImages, 3, 21, 23});
  REQUIRE(batch.tensor.shape().size() == 1);
  for (const ViewTensor& view : views)
    REQUIRE(reinterpret_cast<std::uintptr_t>(view.data.data()) % kPackedAlignment == 0);
  bool differs = false;
  for (std::size_t i = 0; i < kViewsImages; ++i) {
    REQUIRE(image_of(views[0], i) == pixels_of(first.tensor, i));
    REQUIRE(image_of(views[2], i) == pixels_of(last.tensor, i));
    REQUIRE(pixels_of(batch.tensor, i) == image_of(views[0], i));
    differs = differs || image_of(views[1], i) != image_of(views[0], i);
  }
  REQUIRE(differs);
  const SampleInfo sample = last.tensor.sample(0);
  REQUIRE(std::max(sample.resized.width, sample.resized.height) == 20);
  REQUIRE((sample.window_left < 0 && sample.window_top <= 0));
  REQUIRE(first.tensor.views().empty());
}

TEST_CASE("what on_error makes of a bad sample it makes of each of its views", "[system]") {
  const Recipe recipe = Recipe::of_views({large(), small()});
  ViewsMill mill(recipe);
  const Batch whole = mill.make(mill.request(recipe));
  mill.spoil(2);

  const Batch skipped = mill.make(mill.request(recipe, OnError::kSkip));
  const Batch zeroed = mill.make(mill.request(recipe, OnError::kZero));
  const Batch substituted = mill.make(mill.request(recipe, OnError::kSubstitute));
  const Batch failed = mill.make(mill.request(recipe));

  REQUIRE(failed.failure);
  REQUIRE(skipped.tensor.views()[0].shape[0] == kViewsImages - 1);
  for (std::size_t view = 0; view < 2; ++view) {
    const ViewTensor& good = whole.tensor.views()[view];
    for (std::size_t i = 0; i < kViewsImages; ++i) {
      INFO("view " << view << ", image " << i);
      const std::vector<std::byte> zeroes(good.strides[0]);
      CHECK(image_of(zeroed.tensor.views()[view], i) == (i == 2 ? zeroes : image_of(good, i)));
      CHECK(image_of(substituted.tensor.views()[view], i) == image_of(good, i == 2 ? 1 : i));
      if (i != 2) CHECK(image_of(skipped.tensor.views()[view], i < 2 ? i : i - 1) == image_of(good, i));
    }
  }
}

TEST_CASE("an epoch's batches have views, too, and go on after a position with the same", "[system]") {
  ViewsMill mill(Recipe::of_views({large(), small()}));
  const Dataset dataset = need(mill.session.open_dataset(mill.folder / "pictures"));
  std::vector<std::vector<std::byte>> all, rest;
  std::string position;
  const auto run = [&](const std::string& from, std::vector<std::vector<std::byte>>& made) {
    Epoch epoch = mill.session.epoch(dataset, {.batch = 3, .seed = 3, .shuffle = true, .position = from});
    for (const Batch& batch : epoch) {
      if (from.empty() && made.empty()) position = batch.position;
      std::vector<std::byte> bytes;
      for (const ViewTensor& view : batch.tensor.views()) bytes.insert(bytes.end(), view.data.begin(), view.data.end());
      made.push_back(std::move(bytes));
    }
    REQUIRE(epoch.result());
  };

  run({}, all);
  run(position, rest);

  REQUIRE(all.size() == 3);
  REQUIRE(rest.size() == 2);
  REQUIRE(rest[0] == all[1]);
  REQUIRE(rest[1] == all[2]);
}

}  // namespace
}  // namespace millrace
