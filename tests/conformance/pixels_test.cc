// Every backend makes the same pixels: those of the slow path, bit by bit.
#include <random>

#include "daemon/draw/draw_steps.h"
#include "kernels/augment/augment.h"
#include "tests/conformance/bench_of_backend.h"
#include "tests/conformance/slow_path.h"
#include "tests/support/jpeg/mrp_file.h"
#include "tests/support/pictures/heic_files.h"
#include "tests/support/rounds.h"

namespace millrace {
namespace {

std::int32_t below(std::mt19937& random, std::uint32_t bound) {
  return static_cast<std::int32_t>(random() % bound);
}
Size random_size(std::mt19937& random, std::uint32_t longest) {
  return {static_cast<std::uint32_t>(1 + random() % longest), static_cast<std::uint32_t>(1 + random() % longest)};
}

Box random_box(std::mt19937& random, Size size) {
  const std::int32_t left = below(random, size.width), top = below(random, size.height);
  return {left, top, 1 + below(random, size.width - static_cast<std::uint32_t>(left)),
          1 + below(random, size.height - static_cast<std::uint32_t>(top))};
}

SampleGeometry random_geometry(std::mt19937& random, const EncodedImage& image) {
  SampleGeometry geometry;
  geometry.crop = random_box(random, oriented_size(image.info));
  geometry.resized = random_size(random, 90);
  if (random() % 5 == 0)
    geometry.resized = {static_cast<std::uint32_t>(geometry.crop.width),
                        static_cast<std::uint32_t>(geometry.crop.height)};
  geometry.window = random_box(random, geometry.resized);
  geometry.flip = random() % 2 == 0;
  return geometry;
}

// The same with a window of one to four groups a side.
SampleGeometry geometry_of_groups(std::mt19937& random, const EncodedImage& image, Size group) {
  SampleGeometry geometry = random_geometry(random, image);
  const std::int32_t width = static_cast<std::int32_t>(group.width) * (1 + below(random, 4));
  const std::int32_t height = static_cast<std::int32_t>(group.height) * (1 + below(random, 4));
  geometry.window = {below(random, 9), below(random, 9), width, height};
  geometry.resized = {static_cast<std::uint32_t>(width + geometry.window.left + below(random, 9)),
                      static_cast<std::uint32_t>(height + geometry.window.top + below(random, 9))};
  return geometry;
}

EncodedImage random_image(std::mt19937& random, ImageFormat format, int orientation) {
  const Size size = random_size(random, 160);
  const bool grey = format != ImageFormat::kWebp && random() % 4 == 0;
  const Pixels pixels = make_pixels(size.width, size.height, grey ? 1 : 3, random());
  const int most_h_samp = size.width > 4 ? 2 : 1;  // chroma of a sample or two is libjpeg-turbo's affair alone
  std::vector<std::byte> bytes;
  if (format == ImageFormat::kJpeg)
    bytes = make_jpeg({.pixels = pixels,
                       .h_samp = 1 + below(random, most_h_samp),
                       .v_samp = 1 + below(random, 2),
                       .progressive = random() % 3 == 0,
                       .exif_orientation = orientation});
  if (format == ImageFormat::kPng) bytes = make_png({.pixels = pixels, .interlaced = random() % 2 == 0});
  if (format == ImageFormat::kWebp) bytes = make_webp({.pixels = pixels, .lossless = random() % 2 == 0});
  if (format == ImageFormat::kPnm) bytes = make_pnm({.pixels = pixels});
  if (format == ImageFormat::kL3)
    bytes = make_l3({.pixels = pixels, .orientation = orientation, .coloured = grey && random() % 2 == 0});
  if (format == ImageFormat::kTiff)
    bytes = make_tiff({.pixels = pixels, .compression = grey ? 5 : 8, .tiled = random() % 2 == 0});
  if (format == ImageFormat::kHeic) {
    const Pixels known = heic_pixels(grey ? "grey" : "colour");
    return encoded(heic_file(grey ? "grey" : "colour"), format, {known.width, known.height}, orientation);
  }
  if (format == ImageFormat::kAvif)
    bytes = make_avif({.pixels = pixels, .bit_depth = random() % 3 == 0 ? 10 : 8, .orientation = orientation});
  if (format == ImageFormat::kBmp) bytes = make_bmp({.pixels = pixels, .run_length = grey});
  if (format == ImageFormat::kGif)
    bytes = make_gif({.pixels = make_pixels(size.width, size.height, 1, random()),
                      .coloured = !grey,
                      .interlaced = random() % 2 == 0});
  if (format == ImageFormat::kPacked)
    bytes = make_mrp(make_jpeg({.pixels = pixels,
                                .h_samp = 1 + below(random, most_h_samp),
                                .v_samp = 1 + below(random, 2),
                                .exif_orientation = orientation}));
  return encoded(bytes, format, size, orientation);
}

Recipe random_recipe(std::mt19937& random, DType dtype, Layout layout, Channels channels) {
  Recipe recipe{.filter = static_cast<Filter>(random() % 6), .dtype = dtype, .layout = layout, .channels = channels};
  if (dtype != DType::kUint8 && random() % 2 == 0)
    recipe.normalise = Normalise{.mean = {0.485F, 0.456F, 0.406F}, .std = {0.229F, 0.224F, 0.225F}};
  if (random() % 3 == 0) recipe.range = ValueRange::kRaw;
  return recipe;
}

// Every format, in all orientations.
JobOnTheBench random_job(std::mt19937& random, const Recipe& recipe) {
  JobOnTheBench job(recipe);
  for (const ImageFormat format : all_formats()) {
    for (int orientation = 1; orientation <= 8; ++orientation) {
      EncodedImage image = random_image(random, format, orientation);
      const SampleGeometry geometry = random_geometry(random, image);
      job.add(std::move(image), geometry);
    }
  }
  return job;
}

}  // namespace

TEST_CASE("pixels are those of the slow path for every format, orientation, element type and layout", "[conformance]") {
  for (const BackendUnderTest& row : testable_backends()) {
    const std::unique_ptr<Backend> backend = start(row, {.lanes = 2, .fake = "delay_us=300"});
    std::mt19937 random(1);
    for (const DType dtype : {DType::kUint8, DType::kFloat16, DType::kBfloat16, DType::kFloat32}) {
      for (const Layout layout : {Layout::kNchw, Layout::kNhwc}) {
        for (const Channels channels : {Channels::kRgb, Channels::kBgr, Channels::kGrey}) {
          if (!is_taken(static_cast<int>(dtype) + static_cast<int>(layout) + static_cast<int>(channels))) continue;
          JobOnTheBench bench = random_job(random, random_recipe(random, dtype, layout, channels));
          Collector collector;
          REQUIRE(backend->try_submit(bench.job(collector)));

          const std::vector<Finished> finished = collector.wait_for(1);

          for (std::size_t i = 0; i < bench.tensors.size(); ++i) {
            const SampleTask& task = finished[0].tasks[i];
            INFO(row.name << ", sample " << i << ", recipe " << static_cast<int>(dtype) << static_cast<int>(layout)
                          << static_cast<int>(channels) << ", filter " << static_cast<int>(bench.recipe->filter));
            if (is_refused(*backend, task, *bench.recipe, finished[0].outcomes[i])) continue;
            INFO((finished[0].outcomes[i].error ? finished[0].outcomes[i].error->message : ""));
            REQUIRE_FALSE(finished[0].outcomes[i].error);
            REQUIRE(bench.tensors[i]->intact());
            REQUIRE(bench.tensors[i]->copy() == make_slowly(task.image, task.geometry, *bench.recipe));
          }
        }
      }
    }
  }
}

TEST_CASE("patches hold the slow path's pixels for every element type and channel order", "[conformance]") {
  const Patches kinds[] = {{{14, 14}, 2, 2}, {{16, 9}, 1, 1}, {{3, 5}, 3, 4}};
  for (const BackendUnderTest& row : testable_backends()) {
    const std::unique_ptr<Backend> backend = start(row, {.lanes = 2});
    std::mt19937 random(11);
    for (const DType dtype : {DType::kUint8, DType::kFloat16, DType::kBfloat16, DType::kFloat32}) {
      for (const Channels channels : {Channels::kRgb, Channels::kBgr, Channels::kGrey}) {
        for (const Patches& patches : kinds) {
          if (!is_taken(static_cast<int>(dtype) + static_cast<int>(channels) + static_cast<int>(&patches - kinds)))
            continue;
          Recipe recipe = random_recipe(random, dtype, Layout::kNchw, channels);
          recipe.patches = patches;
          JobOnTheBench bench(recipe);
          for (const ImageFormat format : all_formats()) {
            EncodedImage image = random_image(random, format, 1 + below(random, 8));
            const SampleGeometry geometry = geometry_of_groups(random, image, patches.group());
            bench.add(std::move(image), geometry);
          }
          Collector collector;
          REQUIRE(backend->try_submit(bench.job(collector)));

          const Finished finished = collector.wait_for_one();

          for (std::size_t i = 0; i < bench.tensors.size(); ++i) {
            const SampleTask& task = finished.tasks[i];
            INFO(row.name << ", sample " << i << ", recipe " << static_cast<int>(dtype) << static_cast<int>(channels)
                          << ", patches of " << patches.size.width << "x" << patches.size.height);
            if (is_refused(*backend, task, *bench.recipe, finished.outcomes[i])) continue;
            REQUIRE_FALSE(finished.outcomes[i].error);
            REQUIRE(bench.tensors[i]->intact());
            REQUIRE(bench.tensors[i]->copy() == make_slowly(task.image, task.geometry, *bench.recipe));
          }
        }
      }
    }
  }
}

TEST_CASE("CPUs and GPUs make JPEG files of every orientation, and patches of them", "[conformance]") {
  const Recipe patches{.resize = ExactSize{{32, 32}}, .patches = Patches{.size = {8, 4}, .merge = 2, .temporal = 2}};
  for (const BackendUnderTest& row : testable_backends()) {
    if (row.name != "cpu" && row.name != "cuda") continue;
    const std::unique_ptr<Backend> backend = start(row);
    for (int orientation = 1; orientation <= 8; ++orientation) {
      for (const Recipe& recipe : {Recipe{}, patches}) {
        INFO(row.name << ", orientation " << orientation << (recipe.patches ? ", patches" : ""));
        EncodedImage image =
            encoded(make_jpeg({.pixels = make_pixels(60, 40, 3, 7)}), ImageFormat::kJpeg, {60, 40}, orientation);
        const SampleGeometry geometry = resized_whole(image, {32, 32});
        JobOnTheBench bench(recipe);
        bench.add(std::move(image), geometry);
        Collector collector;
        REQUIRE(backend->can_make({bench.tasks[0].image.info, geometry}, recipe));
        REQUIRE(backend->try_submit(bench.job(collector)));

        const Finished finished = collector.wait_for_one();

        REQUIRE_FALSE(finished.outcomes[0].error);
        REQUIRE(bench.tensors[0]->copy() == make_slowly(finished.tasks[0].image, geometry, recipe));
      }
    }
  }
}

TEST_CASE("steps of augmentation are done to the slow path's pixels, or the backend says that it does none",
          "[conformance]") {
  const Recipe plain{.layout = Layout::kNhwc};
  Recipe recipe = plain;
  recipe.steps = {{.kind = steps::RandAugment{.operations = 4}}, {.probability = 0.5F, .kind = steps::Simple::kInvert}};
  for (const BackendUnderTest& row : testable_backends()) {
    const std::unique_ptr<Backend> backend = start(row);
    std::mt19937 random(11);
    JobOnTheBench bench = random_job(random, recipe);
    std::uint64_t id = 0;
    for (SampleTask& task : bench.tasks) task.geometry.draws = RandomKey{.seed = 3, .sample = SampleId{id++}};
    Collector collector;
    REQUIRE(backend->try_submit(bench.job(collector)));

    const Finished finished = collector.wait_for_one();

    for (std::size_t i = 0; i < bench.tensors.size(); ++i) {
      const SampleTask& task = finished.tasks[i];
      INFO(row.name << ", sample " << i);
      if (is_refused(*backend, task, recipe, finished.outcomes[i])) continue;
      REQUIRE_FALSE(finished.outcomes[i].error);
      REQUIRE(bench.tensors[i]->intact());
      std::vector<std::byte> expected = make_slowly(task.image, task.geometry, plain);
      const Size size = task.geometry.output();
      const int width = static_cast<int>(size.width), height = static_cast<int>(size.height);
      const kernels::MutableU8View picture{reinterpret_cast<std::uint8_t*>(expected.data()), width, height, 3,
                                           std::ptrdiff_t{3} * width};
      std::vector<kernels::Operation> operations;
      draw_steps(recipe.steps, picture.size(), *task.geometry.draws, operations);
      kernels::TimeLimit limit;
      REQUIRE(kernels::Augmenter(kernels::Target::kScalar).apply(picture, operations, limit, picture));
      REQUIRE(bench.tensors[i]->copy() == expected);
    }
  }
}

TEST_CASE("pixels do not depend on lanes, on company, or on what was made before", "[conformance]") {
  for (const BackendUnderTest& row : testable_backends()) {
    std::vector<std::vector<std::byte>> first;
    for (const std::uint32_t lanes : {1U, 3U}) {
      const std::unique_ptr<Backend> backend = start(row, {.lanes = lanes});
      std::mt19937 random(7);
      std::vector<std::vector<std::byte>> made;
      for (int round = 0; round < 3; ++round) {
        JobOnTheBench bench = random_job(random, Recipe{});
        if (lanes == 3) std::rotate(bench.tasks.begin(), bench.tasks.begin() + 5, bench.tasks.end());
        Collector collector;
        REQUIRE(backend->try_submit(bench.job(collector)));
        collector.wait_for(1);
        for (const auto& tensor : bench.tensors) made.push_back(tensor->copy());
      }
      INFO(row.name << ", " << lanes << " lanes");
      if (first.empty()) first = made;
      REQUIRE(made == first);
    }
  }
}

}  // namespace millrace
