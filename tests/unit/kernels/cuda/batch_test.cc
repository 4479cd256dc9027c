// Whole batches of the CUDA kernels on the host executor, from files to tensors, beside libjpeg-turbo and the CPU's
// kernels: photographs, odd files, hostile ones, random streams; with and without seek indexes.
#include <algorithm>

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
using kernels::Size;

// A batch and what it is made of.
struct Batch {
  std::vector<const File*> files;
  std::vector<ImageRequest> requests;
  std::vector<std::uint8_t> encoded;
  // Bytes of a file's place are not a multiple of anything.
  void add(const File& file, const Box& box, Flip flip = Flip::kNone, kernels::jpeg::IndexBytes index = {}) {
    encoded.resize(encoded.size() + files.size() % 7, 0xFF);
    requests.push_back({.file_untrusted = file_bytes(file),
                        .at = encoded.size(),
                        .crop = box,
                        .flip = flip,
                        .index_untrusted = index,
                        .index_owner = 3});
    files.push_back(&file);
    const auto bytes = file_bytes(file);
    encoded.insert(encoded.end(), bytes.begin(), bytes.end());
  }
};

struct Verdicts {
  int done = 0, refused = 0, not_here = 0, not_in_time = 0;
};

std::vector<std::byte> tensor_of(const HostBatch& made, const BatchPlan& plan, std::size_t request) {
  const auto begin = made.tensors.begin() + static_cast<std::ptrdiff_t>(request * plan.tensor_bytes);
  return {begin, begin + static_cast<std::ptrdiff_t>(plan.tensor_bytes)};
}

// Every tensor that is done is libjpeg-turbo's, and none is touched that was refused.
Verdicts check_batch(Planner& planner, HostRunner& runner, const BatchRecipe& recipe, const Batch& batch,
                     std::uint32_t seed) {
  const BatchPlan& plan = planner.plan(batch.requests);
  const HostBatch made = runner.run(plan, batch.encoded, seed);
  Verdicts verdicts;
  for (std::size_t i = 0, job = 0; i < batch.requests.size(); ++i) {
    CAPTURE(i, plan.refusals[i]);
    const auto tensor = tensor_of(made, plan, i);
    if (!plan.refusals[i].empty()) {
      ++verdicts.refused;
      REQUIRE(std::ranges::all_of(tensor, [](std::byte byte) { return byte == std::byte{0xA5}; }));
      continue;
    }
    const Status status = made.statuses[job++];
    verdicts.not_here += status == Status::kNotHere;
    verdicts.not_in_time += status == Status::kNotInTime;
    if (status != Status::kDone) continue;
    ++verdicts.done;
    const auto size = kernels::jpeg::read_header(file_bytes(*batch.files[i]), kernels::jpeg::Chroma::kQuarter)->size;
    REQUIRE((tensor == reference_tensor(*batch.files[i], size, recipe,
                                        {.crop = batch.requests[i].crop, .flip = batch.requests[i].flip})));
  }
  return verdicts;
}

Flip random_flip(std::mt19937& random) {
  return below(random, 2) == 0 ? Flip::kNone : Flip::kHorizontal;
}

std::optional<Size> planned_size(const File& file) {
  const auto header = kernels::jpeg::read_header(file_bytes(file), kernels::jpeg::Chroma::kQuarter);
  return header ? std::optional(header->size) : std::nullopt;
}

constexpr BatchRecipe kSmall{.size = {40, 32}};

TEST_CASE("photographs become the CPU's tensors", "[cuda][batch]") {
  const auto folder = test_data("photos");
  if (!folder) return;
  const auto files = files_in(*folder);
  const BatchRecipe recipe{.size = {64, 64}, .store = {.dtype = kernels::DType::kFloat16}};
  Planner planner(recipe, {.wanted_tiles = 24});
  HostRunner runner;
  std::mt19937 random(1);
  const auto every = static_cast<std::size_t>(std::max(1, 10 / rounds(1)));
  for (std::size_t first = 0; first < files.size(); first += 4 * every) {
    Batch batch;
    for (std::size_t i = first; i < std::min(files.size(), first + 4 * every); i += every)
      batch.add(files[i].second, random_box(random, *planned_size(files[i].second)), random_flip(random));
    CAPTURE(first, files[first].first);

    const Verdicts verdicts = check_batch(planner, runner, recipe, batch, static_cast<std::uint32_t>(first));

    REQUIRE(verdicts.done + verdicts.not_in_time == static_cast<int>(batch.requests.size()));
    REQUIRE(verdicts.not_in_time == 0);
  }
}

TEST_CASE("made pictures of every sampling, with restarts or not, become the CPU's tensors", "[cuda][batch]") {
  struct Made {
    int h, v, restart_interval;
    std::uint32_t channels;
  };
  constexpr Made kMade[] = {{1, 1, 0, 3}, {2, 1, 0, 3}, {1, 2, 0, 3}, {2, 2, 0, 3}, {4, 1, 0, 3}, {1, 1, 0, 1},
                            {1, 1, 5, 3}, {2, 1, 7, 3}, {2, 2, 1, 3}, {4, 1, 3, 3}, {1, 1, 9, 1}, {2, 2, 9000, 3}};
  std::mt19937 random(2);
  for (const Filter filter : {Filter::kBilinear, Filter::kLanczos}) {
    const BatchRecipe recipe{.size = {40, 32}, .filter = filter};
    std::vector<File> files;
    for (const Made& made : kMade)
      files.push_back(
          make_jpeg({.pixels = make_pixels(static_cast<std::uint32_t>(20 + below(random, 200)),
                                           static_cast<std::uint32_t>(20 + below(random, 200)), made.channels, 5),
                     .h_samp = made.h,
                     .v_samp = made.v,
                     .restart_interval = made.restart_interval,
                     .optimise = true}));
    Planner planner(recipe, {.wanted_tiles = 20});
    HostRunner runner;
    Batch batch;
    for (const File& file : files) batch.add(file, random_box(random, *planned_size(file)), random_flip(random));

    const Verdicts verdicts = check_batch(planner, runner, recipe, batch, 4);

    REQUIRE(verdicts.done == static_cast<int>(files.size()));
  }
}

TEST_CASE("a window of the resized picture, and a photograph of 12 megapixels, become the CPU's tensors",
          "[cuda][batch]") {
  const File small = make_jpeg({.pixels = make_pixels(150, 110, 3, 4)});
  const File large = make_jpeg({.pixels = make_pixels(4000, 3000, 3, 5), .quality = 80});
  Batch batch;
  batch.add(small, {3, 2, 140, 100}, Flip::kHorizontal);
  batch.requests[0].resized = {60, 50};
  batch.requests[0].window = {7, 11, 40, 32};
  batch.add(large, {0, 0, 4000, 3000});
  Planner planner(kSmall);
  HostRunner runner;

  const BatchPlan& plan = planner.plan(batch.requests);
  const HostBatch made = runner.run(plan, batch.encoded, 1);

  REQUIRE(plan.refusals[0] == "");
  REQUIRE(plan.refusals[1] == "");
  REQUIRE(made.statuses[0] == Status::kDone);
  REQUIRE(made.statuses[1] == Status::kDone);
  REQUIRE((tensor_of(made, plan, 0) ==
           reference_tensor(
               small, {150, 110}, kSmall,
               {.crop = {3, 2, 140, 100}, .flip = Flip::kHorizontal, .resized = Size{60, 50}, .left = 7, .top = 11})));
  REQUIRE((tensor_of(made, plan, 1) == reference_tensor(large, {4000, 3000}, kSmall, {.crop = {0, 0, 4000, 3000}})));
}

TEST_CASE("with seek indexes the tensors are the same", "[cuda][batch]") {
  std::mt19937 random(3);
  kernels::jpeg::Decoder decoder;
  Planner planner(kSmall);
  HostRunner runner;
  for (int round = 0; round < rounds(4); ++round) {
    std::vector<File> files;
    std::vector<kernels::jpeg::Seeking> indexes;
    for (int i = 0; i < 4; ++i) {
      files.push_back(make_jpeg({.pixels = make_pixels(static_cast<std::uint32_t>(60 + below(random, 300)),
                                                       static_cast<std::uint32_t>(60 + below(random, 200)), 3, 9),
                                 .h_samp = 1 + i % 2,
                                 .v_samp = 1 + i / 2}));
      const auto header = kernels::jpeg::read_header(file_bytes(files.back()));
      std::vector<std::uint8_t> pixels(static_cast<std::size_t>(header->size.width) * header->size.height * 3);
      indexes.push_back({.owner = 3});
      REQUIRE(decoder.decode(*header, whole(header->size),
                             {pixels.data(), header->size.width, header->size.height, 3, header->size.width * 3},
                             std::chrono::steady_clock::time_point::max(),
                             &indexes.back()) == kernels::jpeg::Outcome::kDecoded);
    }
    Batch batch;
    for (std::size_t i = 0; i < files.size(); ++i)
      batch.add(files[i], random_box(random, *planned_size(files[i])), random_flip(random), indexes[i].made);

    const Verdicts verdicts = check_batch(planner, runner, kSmall, batch, static_cast<std::uint32_t>(round));

    REQUIRE(verdicts.done == 4);
    REQUIRE(planner.plan(batch.requests).segments.size() >= 4);
  }
}

TEST_CASE("a seek index of another file is not used", "[cuda][batch]") {
  std::mt19937 random(4);
  kernels::jpeg::Decoder decoder;
  std::vector<File> files;
  std::vector<kernels::jpeg::Seeking> indexes;
  for (const std::uint32_t seed : {1U, 2U}) {
    files.push_back(make_jpeg({.pixels = make_pixels(160, 120, 3, seed), .quality = static_cast<int>(70 + seed)}));
    std::vector<std::uint8_t> pixels(160 * 120 * 3);
    indexes.push_back({.owner = 3});
    REQUIRE(decoder.decode(*kernels::jpeg::read_header(file_bytes(files.back())), {0, 0, 160, 120},
                           {pixels.data(), 160, 120, 3, 480}, std::chrono::steady_clock::time_point::max(),
                           &indexes.back()) == kernels::jpeg::Outcome::kDecoded);
  }
  Batch batch;
  batch.add(files[0], {10, 20, 100, 90}, Flip::kNone, indexes[1].made);
  batch.add(files[1], {0, 0, 160, 120}, Flip::kNone, indexes[0].made);
  Planner planner(kSmall);
  HostRunner runner;

  const Verdicts verdicts = check_batch(planner, runner, kSmall, batch, 1);

  REQUIRE(verdicts.done == 2);
}

TEST_CASE("random streams become the CPU's tensors, and damaged ones never other ones", "[cuda][batch]") {
  std::mt19937 random(5);
  Planner planner(kSmall, {.wanted_tiles = 8});
  HostRunner runner;
  int done = 0;
  for (int round = 0; round < rounds(12); ++round) {
    std::vector<File> files;
    for (int i = 0; i < 4; ++i) {
      const auto kind = i % 2 == 0 ? JpegDraw::Kind::kPlain : JpegDraw::Kind::kAny;
      const JpegFile file = write_jpeg(draw_jpeg({.kind = kind}, random));
      files.push_back(file.bytes);
      files.push_back(damage(file, static_cast<JpegDamage>(below(random, kJpegDamages)), random));
    }
    Batch batch;
    for (const File& file : files)
      batch.add(file, random_box(random, planned_size(file).value_or(Size{8, 8})), random_flip(random));
    CAPTURE(round);

    done += check_batch(planner, runner, kSmall, batch, static_cast<std::uint32_t>(round)).done;
  }
  REQUIRE(done > rounds(12));
}

TEST_CASE("hostile and odd files give the CPU's tensors or none", "[cuda][batch]") {
  std::mt19937 random(6);
  Planner planner(kSmall, {.wanted_tiles = 8});
  HostRunner runner;
  for (const char* const folder : {"bad-jpeg", "jpeg-variants"}) {
    const auto data = test_data(folder);
    if (!data) continue;
    for (const auto& [name, file] : files_in(*data)) {
      const auto size = planned_size(file);
      if (!size || static_cast<std::int64_t>(size->width) * size->height > 1'000'000) continue;
      CAPTURE(name);
      Batch batch;
      batch.add(file, random_box(random, *size), random_flip(random));
      check_batch(planner, runner, kSmall, batch, 1);
    }
  }
}

TEST_CASE("a bad image changes no other image's tensor", "[cuda][batch]") {
  std::mt19937 random(7);
  const File good = make_jpeg({.pixels = make_pixels(150, 100, 3, 1)});
  const JpegFile stream = write_jpeg(draw_jpeg({.width = 90, .height = 90, .h = 1, .v = 1, .components = 3}, random));
  Planner planner(kSmall);
  HostRunner runner;
  Batch alone;
  alone.add(good, {5, 6, 120, 80});
  alone.add(good, {0, 0, 150, 100});
  const BatchPlan& plan = planner.plan(alone.requests);
  const HostBatch expected = runner.run(plan, alone.encoded, 1);
  const auto first = tensor_of(expected, plan, 0), second = tensor_of(expected, plan, 1);
  for (int kind = 0; kind < kJpegDamages; ++kind) {
    const File bad = damage(stream, static_cast<JpegDamage>(kind), random);
    Batch batch;
    batch.add(good, {5, 6, 120, 80});
    batch.add(bad, {0, 0, 90, 90});
    batch.add(good, {0, 0, 150, 100});
    const BatchPlan& mixed = planner.plan(batch.requests);

    const HostBatch made = runner.run(mixed, batch.encoded, static_cast<std::uint32_t>(kind));

    REQUIRE((tensor_of(made, mixed, 0) == first));
    REQUIRE((tensor_of(made, mixed, 2) == second));
  }
}

}  // namespace
}  // namespace millrace::kernels::cuda
