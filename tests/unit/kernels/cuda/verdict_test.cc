// The CUDA kernels' verdict on damaged files beside that of the CPU's image maker: what the kernels make is what the
// CPU makes, pixel by pixel, and a file that the CPU calls damaged is made by neither.
#include <algorithm>

#include "daemon/backend/cpu/making/image_maker.h"
#include "daemon/backend/words.h"
#include "daemon/formats/probe.h"
#include "kernels/cuda/plan/host_run.h"
#include "tests/support/jpeg/random_jpeg.h"
#include "tests/support/jpeg/restart_damage.h"
#include "tests/support/pictures/test_data.h"
#include "tests/support/pictures/test_images.h"
#include "tests/support/rounds.h"
#include "tests/unit/kernels/jpeg/damaged_jpeg.h"
#include "tests/unit/kernels/jpeg/jpeg_rig.h"

namespace millrace {
namespace {

namespace cuda = kernels::cuda;

// A file and how it becomes a tensor.
struct Mutant {
  File file;
  SampleGeometry geometry;
  std::vector<std::uint8_t> index;  // of the file; empty: none
};

constexpr std::uint64_t kVerdictOwner = 3;

std::optional<EncodedImage> encoded(const File& file) {
  EncodedBytes bytes(file.size());
  std::copy(file.begin(), file.end(), bytes.writable().begin());
  const auto info = probe_image(bytes.view(), SampleLimits{}, UseOrientation::kNo);
  if (!info) return std::nullopt;
  return EncodedImage{std::move(bytes), *info};
}

// By the way of the CPU's lanes; nullopt: an error.
std::optional<std::vector<std::byte>> made_by_cpu(const Mutant& mutant, const Recipe& recipe, ImageWorkspace& workspace,
                                                  Fidelity fidelity = Fidelity::kExact) {
  auto image = encoded(mutant.file);
  if (!image) return std::nullopt;
  std::vector<std::byte> tensor(image_bytes(recipe, mutant.geometry.output()).count);
  const SampleTask task{0, std::move(*image), mutant.geometry, in_host_memory(tensor)};
  if (make_image(task, recipe, SampleLimits{}, workspace, fidelity).error) return std::nullopt;
  return tensor;
}

// The kernels on the host executor, for one recipe; each tensor of them, or nullopt.
class Kernels {
 public:
  Kernels(const Recipe& recipe, Size size, Fidelity fidelity = Fidelity::kExact)
      : planner_({.size = in_kernels(size),
                  .store = store_spec(recipe),
                  .filter = resample_spec({{0, 0, 8, 8}, size, {0, 0, 8, 8}}, recipe, 3).filter,
                  .fidelity = fidelity == Fidelity::kFast ? cuda::Fidelity::kFast : cuda::Fidelity::kExact},
                 {.wanted_tiles = 8}) {}

  std::optional<std::vector<std::byte>> make(const Mutant& mutant) { return make(std::vector{mutant}, 1)[0]; }
  std::vector<std::optional<std::vector<std::byte>>> make(const std::vector<Mutant>& mutants, std::uint32_t seed) {
    std::vector<std::uint8_t> encoded;
    std::vector<cuda::ImageRequest> requests;
    for (const Mutant& mutant : mutants) {
      const auto bytes = file_bytes(mutant.file);
      requests.push_back({.file_untrusted = bytes,
                          .at = encoded.size(),
                          .crop = in_kernels(mutant.geometry.crop),
                          .flip = flip_of(mutant.geometry),
                          .resized = in_kernels(mutant.geometry.resized),
                          .window = in_kernels(mutant.geometry.window),
                          .index_untrusted = mutant.index,
                          .index_owner = kVerdictOwner});
      encoded.insert(encoded.end(), bytes.begin(), bytes.end());
      encoded.resize(encoded.size() + requests.size() % 7);
    }
    const cuda::BatchPlan& plan = planner_.plan(requests);
    const cuda::HostBatch made = runner_.run(plan, encoded, seed);
    std::vector<std::optional<std::vector<std::byte>>> tensors(mutants.size());
    for (std::size_t job = 0; job < plan.jobs.size(); ++job) {
      if (made.statuses[job] != cuda::Status::kDone) continue;
      const auto begin = made.tensors.begin() + static_cast<std::ptrdiff_t>(plan.requests[job] * plan.tensor_bytes);
      tensors[plan.requests[job]].emplace(begin, begin + static_cast<std::ptrdiff_t>(plan.tensor_bytes));
    }
    return tensors;
  }

 private:
  cuda::Planner planner_;
  cuda::HostRunner runner_;
};

// What the mutants of a test came to.
struct Tally {
  int mutants = 0, made = 0, refused = 0;  // by the kernels; by both
};

// Of the kernels' tensors, each is the CPU's; of `fast`, whose pixels differ a little, the CPU makes one, too.
void check_verdict(const Recipe& recipe, Fidelity fidelity, Kernels& kernels, ImageWorkspace& workspace,
                   const std::vector<Mutant>& mutants, std::uint32_t seed, Tally& tally) {
  const auto made = kernels.make(mutants, seed);
  for (std::size_t i = 0; i < mutants.size(); ++i) {
    const auto expected = made_by_cpu(mutants[i], recipe, workspace, fidelity);
    ++tally.mutants;
    tally.made += made[i].has_value();
    tally.refused += !expected && !made[i];
    CAPTURE(seed, i);
    if (made[i]) REQUIRE(expected);
    if (made[i] && fidelity == Fidelity::kExact) REQUIRE((made[i] == expected));
  }
}

// --- drawing ---

// A crop that becomes a tensor of `size`, or a window of what it is resized to.
SampleGeometry draw_geometry(Size stored, Size size, std::mt19937& random) {
  const kernels::Size verdict_picture = in_kernels(stored);
  kernels::Box crop{0, 0, verdict_picture.width, verdict_picture.height};
  if (!one_in(random, 4)) crop = random_box(random, verdict_picture);
  SampleGeometry geometry{.crop = {crop.left, crop.top, crop.width, crop.height},
                          .resized = size,
                          .window = {0, 0, static_cast<int>(size.width), static_cast<int>(size.height)},
                          .flip = one_in(random, 2)};
  if (one_in(random, 2)) return geometry;
  geometry.window.left = below(random, 60);
  geometry.window.top = below(random, 60);
  geometry.resized.width += static_cast<std::uint32_t>(geometry.window.left + below(random, 60));
  geometry.resized.height += static_cast<std::uint32_t>(geometry.window.top + below(random, 60));
  return geometry;
}

// What decoding some part of the file leaves behind; of files that are damaged there, nothing.
std::vector<std::uint8_t> draw_index(const File& file, std::mt19937& random) {
  const auto header = kernels::jpeg::read_header(file_bytes(file));
  if (!header) return {};
  const kernels::Box box = random_box(random, header->size);
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(box.width * box.height * header->components));
  const std::ptrdiff_t stride = std::ptrdiff_t{box.width} * header->components;
  kernels::jpeg::Decoder decoder;
  kernels::jpeg::Seeking seeking{.index_untrusted = {}, .owner = kVerdictOwner, .made = {}};
  const kernels::MutableU8View out{pixels.data(), box.width, box.height, header->components, stride};
  const auto outcome = decoder.decode(*header, box, out, Clock::now() + std::chrono::minutes(5), &seeking);
  return outcome == kernels::jpeg::Outcome::kDecoded ? seeking.made : std::vector<std::uint8_t>{};
}

// nullopt: nothing that the daemon gives to a GPU.
std::optional<Mutant> draw_mutant(File file, Size size, std::mt19937& random) {
  const auto image = encoded(file);
  if (!image || image->info.format != ImageFormat::kJpeg || image->info.has.passes || image->info.has.cmyk)
    return std::nullopt;
  Mutant mutant{std::move(file), draw_geometry(image->info.stored, size, random), {}};
  if (one_in(random, 4)) mutant.index = draw_index(mutant.file, random);
  return mutant;
}

struct Kind {
  Recipe recipe;
  Size size;
  Fidelity fidelity = Fidelity::kExact;
};

std::vector<Kind> kinds() {
  Recipe plain, nearest, lanczos, grey;
  nearest.filter = Filter::kNearest;
  lanczos.filter = Filter::kLanczos;
  grey.channels = Channels::kGrey;
  grey.layout = Layout::kNhwc;
  grey.filter = Filter::kBicubic;
  return {{plain, {41, 37}},   {plain.normalised(DType::kFloat16), {31, 50}},
          {nearest, {17, 19}}, {lanczos, {24, 9}},
          {grey, {63, 5}},     {plain, {20, 30}, Fidelity::kFast}};
}

// --- one kind of damage each ---

void put(File& file, std::size_t at, int byte) {
  file.at(at) = static_cast<std::byte>(byte);
}

void insert(File& file, std::size_t at, std::size_t count, int byte) {
  file.insert(file.begin() + static_cast<std::ptrdiff_t>(at), count, static_cast<std::byte>(byte));
}

JpegFile verdict_picture(kernels::Size size, int h, int v, int restart_interval) {
  return located(make_jpeg(
      {.pixels = make_pixels(static_cast<std::uint32_t>(size.width), static_cast<std::uint32_t>(size.height), 3, 5),
       .h_samp = h,
       .v_samp = v,
       .restart_interval = restart_interval}));
}

// Becomes a tensor of 16 x 16 pixels as it is.
Mutant cut_out(const File& file, int left, int top) {
  return {.file = file,
          .geometry = {.crop = {left, top, 16, 16}, .resized = {16, 16}, .window = {0, 0, 16, 16}},
          .index = {}};
}

struct Both {
  Recipe recipe;
  Kernels kernels{recipe, {16, 16}};
  ImageWorkspace workspace;

  bool kernels_make(const Mutant& mutant) { return kernels.make(mutant).has_value(); }
  bool cpu_makes(const Mutant& mutant) { return made_by_cpu(mutant, recipe, workspace).has_value(); }
};

}  // namespace

TEST_CASE("restart markers behind a crop that are not in turns leave the file to the CPU", "[cuda][verdict]") {
  Both both;
  const JpegFile file = verdict_picture({64, 64}, 1, 1, 4);
  const auto restarts = restarts_of(file);
  REQUIRE(restarts.size() == 15);
  const std::size_t behind = restarts[9], last = restarts.back();
  REQUIRE(both.kernels_make(cut_out(file.bytes, 0, 0)));
  for (const std::size_t at : {behind, last}) {
    for (const int code : {0xD0, 0xD5, 0xD9, 0x01}) {
      File other = file.bytes;
      put(other, at + 1, code);
      CAPTURE(at, code);
      REQUIRE_FALSE(both.kernels_make(cut_out(other, 0, 0)));
    }
    File without = file.bytes, twice = file.bytes;
    put(without, at, 0x11);
    twice.insert(twice.begin() + static_cast<std::ptrdiff_t>(at), {file.bytes[at], file.bytes[at + 1]});
    REQUIRE_FALSE(both.kernels_make(cut_out(without, 0, 0)));
    REQUIRE_FALSE(both.kernels_make(cut_out(twice, 0, 0)));
  }
  File surplus = file.bytes;
  surplus.insert(surplus.begin() + static_cast<std::ptrdiff_t>(file.end), {std::byte{0xFF}, std::byte{0xD7}});
  REQUIRE_FALSE(both.kernels_make(cut_out(surplus, 0, 0)));
}

TEST_CASE("a restart marker in a file that declares none, or so late a one, leaves it to the CPU", "[cuda][verdict]") {
  Both both;
  for (const int interval : {0, 64, 100}) {
    const JpegFile file = verdict_picture({64, 64}, 1, 1, interval);
    File damaged = file.bytes;
    damaged.insert(damaged.begin() + static_cast<std::ptrdiff_t>(file.end), {std::byte{0xFF}, std::byte{0xD0}});
    CAPTURE(interval);
    REQUIRE(both.kernels_make(cut_out(file.bytes, 0, 0)));
    REQUIRE_FALSE(both.kernels_make(cut_out(damaged, 0, 0)));
  }
}

TEST_CASE("bytes too many before the restart marker that a crop ends with leave it to the CPU", "[cuda][verdict]") {
  Both both;
  const JpegFile file = verdict_picture({64, 64}, 1, 1, 2);
  const auto restarts = restarts_of(file);
  File damaged = file.bytes;
  insert(damaged, restarts[4], 2, 0x55);  // behind MCU 9, the crop's last
  REQUIRE(both.kernels_make(cut_out(file.bytes, 0, 0)));
  REQUIRE_FALSE(both.kernels_make(cut_out(damaged, 0, 0)));
  put(damaged, restarts[3] - 3, 0xFF);  // a code that does not exist, in an interval that the crop does not meet
  put(damaged, restarts[3] - 2, 0x00);
  REQUIRE_FALSE((both.kernels_make(cut_out(damaged, 0, 0)) && !both.cpu_makes(cut_out(damaged, 0, 0))));
}

TEST_CASE("with chroma of a quarter of the columns, damage beside the crop is one on either path", "[cuda][verdict]") {
  Both both;
  for (const int h : {1, 4}) {
    const JpegFile file = verdict_picture({128, 64}, h, 1, 1);
    const auto restarts = restarts_of(file);
    const auto interval = static_cast<std::size_t>(128 / 8 / h + 2);  // of the second row of MCUs, to the crop's right
    File damaged = file.bytes;
    for (std::size_t at = restarts[interval - 1] + 2; at + 1 < restarts[interval]; at += 2) {
      put(damaged, at, 0xFF);
      put(damaged, at + 1, 0x00);
    }
    CAPTURE(h);
    REQUIRE(both.kernels_make(cut_out(file.bytes, 0, 0)));
    REQUIRE(both.cpu_makes(cut_out(damaged, 0, 0)) == (h == 1));
    REQUIRE(both.kernels_make(cut_out(damaged, 0, 0)) == (h == 1));
  }
}

TEST_CASE("a level beyond 16 bits above a crop leaves it to the CPU", "[cuda][verdict]") {
  Both both;
  std::mt19937 random(92);
  for (const int interval : {0, 8}) {
    JpegStream stream = draw_jpeg(
        {.width = 32, .height = 64, .h = 1, .v = 1, .components = 1, .density = 0, .restart_interval = interval},
        random);
    for (auto& quant : stream.quant) {
      if (quant) quant->values.fill(1);
    }
    stream.dc.fill(flat_code(5, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}));
    stream.ac.fill(flat_code(1, {0}));
    for (JpegBlock& block : stream.blocks) block = {};
    stream.style = {};
    for (const int most : {16383, 16384}) {
      // Twice up and twice down; the blocks of the crop are of level 0. With restarts, in its interval.
      const std::size_t first = interval == 0 ? 0 : 16;
      const int steps[] = {most, most, -most, -most};
      for (std::size_t i = 0; i < 4; ++i) stream.blocks[first + i][0] = static_cast<std::int16_t>(steps[i]);
      const File file = write_jpeg(stream).bytes;
      const Mutant mutant = cut_out(file, 0, interval == 0 ? 32 : 40);
      CAPTURE(interval, most);
      REQUIRE(both.cpu_makes(mutant));
      REQUIRE(both.kernels_make(mutant) == (most == 16383));
    }
  }
}

TEST_CASE("what the CPU decodes for windows that are padded to the longest is judged by the kernels, too",
          "[cuda][verdict]") {
  const Recipe recipe;
  Kernels kernels(recipe, {31, 31});
  ImageWorkspace workspace;
  int made = 0, refused = 0;
  for (const int v : {1, 2}) {
    const JpegFile file = verdict_picture({69, 56}, 2, v, 0);
    const std::size_t length = file.end - file.scan;
    for (std::size_t part = 4; part < 16; ++part) {
      File cut(file.bytes.begin(), file.bytes.begin() + static_cast<std::ptrdiff_t>(file.scan + length * part / 16));
      cut.insert(cut.end(), {std::byte{0xFF}, std::byte{0xD9}});
      std::vector<Mutant> mutants;
      for (int top = 0; top < 20; ++top)
        mutants.push_back({cut, {.crop = {0, 0, 69, 56}, .resized = {62, 51}, .window = {13, top, 31, 31}}, {}});
      Tally tally;
      check_verdict(recipe, Fidelity::kExact, kernels, workspace, mutants, static_cast<std::uint32_t>(part), tally);
      made += tally.made;
      refused += tally.refused;
    }
  }
  REQUIRE(made > 30);
  REQUIRE(refused > 100);
}

TEST_CASE("nearest leaves a picture to the CPU between whose tiles blocks would go unseen", "[cuda][verdict]") {
  Recipe recipe;
  recipe.filter = Filter::kNearest;
  const JpegFile wide = verdict_picture({2400, 32}, 2, 2, 0);
  const auto makes = [&](std::uint32_t width) {
    Kernels kernels(recipe, {width, 8});
    return kernels
        .make({wide.bytes,
               {.crop = {0, 0, 2400, 32}, .resized = {width, 8}, .window = {0, 0, static_cast<int>(width), 8}},
               {}})
        .has_value();
  };

  REQUIRE(makes(400));
  REQUIRE_FALSE(makes(30));
}

TEST_CASE("what the kernels make of damaged files is what the CPU makes, and nothing that it calls damaged",
          "[cuda][verdict]") {
  std::mt19937 random(91);
  Tally tally;
  ImageWorkspace workspace;
  for (const auto& [recipe, size, fidelity] : kinds()) {
    Kernels kernels(recipe, size, fidelity);
    for (int round = 0; round < rounds(10); ++round) {
      std::vector<Mutant> mutants;
      while (mutants.size() < 16) {
        auto mutant = draw_mutant(draw_damage(draw_file(random), random), size, random);
        if (mutant) mutants.push_back(std::move(*mutant));
      }
      check_verdict(recipe, fidelity, kernels, workspace, mutants, static_cast<std::uint32_t>(round), tally);
    }
  }
  REQUIRE(tally.made > tally.mutants / 4);
  REQUIRE(tally.refused > tally.mutants / 4);
}

TEST_CASE("what the kernels make of damaged photographs is what the CPU makes", "[cuda][verdict]") {
  const auto folder = test_data("photos");
  if (!folder) return;
  const auto files = files_in(*folder);
  const Size size{48, 40};
  const Recipe recipe;
  std::mt19937 random(93);
  Tally tally;
  ImageWorkspace workspace;
  Kernels kernels(recipe, size);
  for (int round = 0; round < rounds(6); ++round) {
    std::vector<Mutant> mutants;
    while (mutants.size() < 8) {
      const File& file = files[random() % files.size()].second;
      auto mutant = draw_mutant(draw_damage(located(file), random), size, random);
      if (mutant) mutants.push_back(std::move(*mutant));
    }
    check_verdict(recipe, Fidelity::kExact, kernels, workspace, mutants, static_cast<std::uint32_t>(round), tally);
  }
  REQUIRE(tally.made > tally.mutants / 4);
}

}  // namespace millrace
