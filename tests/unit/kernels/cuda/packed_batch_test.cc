// Whole batches with packed images on the host executor: the tensors are those of the files that were packed.
#include <algorithm>

#include "daemon/backend/cpu/making/pack_jpeg.h"
#include "kernels/cuda/plan/host_run.h"
#include "kernels/packed/layout.h"
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
using Packed = std::vector<std::uint8_t>;

std::optional<Size> size_of(const File& file) {
  const auto coefficients = read_jpeg_coefficients(file);
  if (!coefficients) return std::nullopt;
  return Size{coefficients->width, coefficients->height};
}

// As the cache has it made; nullopt: none of which it is.
std::optional<Packed> pack_batch(const File& file, Size size) {
  static kernels::jpeg::Decoder decoder;
  static kernels::packed::Encoder encoder;
  DecodingInLane libraries;
  const SourceInfo info{ImageFormat::kJpeg,
                        {static_cast<std::uint32_t>(size.width), static_cast<std::uint32_t>(size.height)}};
  Result<Packed> packed =
      pack_jpeg(file, info, {}, 0, decoder, encoder, Clock::now() + std::chrono::minutes(10), libraries, 0);
  return packed ? std::optional(*std::move(packed)) : std::nullopt;
}

// Files and packed images, as they lie one behind the other.
struct MixedBatch {
  std::vector<ImageRequest> requests;
  std::vector<std::uint8_t> encoded;

  void add(std::span<const std::uint8_t> bytes, ImageKind kind, const Box& crop, Flip flip = Flip::kNone) {
    encoded.resize(encoded.size() + requests.size() % 7, 0xFF);  // a place that is a multiple of nothing
    requests.push_back({.file_untrusted = bytes, .at = encoded.size(), .crop = crop, .flip = flip, .kind = kind});
    encoded.insert(encoded.end(), bytes.begin(), bytes.end());
  }
};

std::vector<std::byte> packed_tensor_of(const HostBatch& made, const BatchPlan& plan, std::size_t request) {
  const auto begin = made.tensors.begin() + static_cast<std::ptrdiff_t>(request * plan.tensor_bytes);
  return {begin, begin + static_cast<std::ptrdiff_t>(plan.tensor_bytes)};
}

// A file and a crop of it.
struct Cut {
  const File* file;
  Size size;
  Box crop;
  Flip flip;
};
Cut random_cut(std::mt19937& random, const File& file) {
  const Size size = *size_of(file);
  return {&file, size, random_box(random, size), below(random, 2) == 0 ? Flip::kNone : Flip::kHorizontal};
}

// Exact tensors of packed images are the CPU's of their files, fast ones the kernels' own of the files. With `files`,
// each file lies beside its packed image; without, K1 has nothing to do.
enum class Beside { kFiles, kNothing };
void check_packed(const BatchRecipe& recipe, const std::vector<Cut>& cuts, Beside beside, std::uint32_t seed) {
  std::vector<Packed> packed;
  for (const Cut& cut : cuts) packed.push_back(pack_batch(*cut.file, cut.size).value());
  MixedBatch batch;
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    batch.add(packed[i], ImageKind::kPacked, cuts[i].crop, cuts[i].flip);
    if (beside == Beside::kFiles)
      batch.add(file_bytes(*cuts[i].file), ImageKind::kJpegFile, cuts[i].crop, cuts[i].flip);
  }
  Planner planner(recipe, {.wanted_tiles = 24});
  HostRunner runner;
  const BatchPlan& plan = planner.plan(batch.requests);
  REQUIRE(plan.scans == (beside == Beside::kFiles ? cuts.size() : 0));

  const HostBatch made = runner.run(plan, batch.encoded, seed);

  for (std::size_t i = 0; i < batch.requests.size(); ++i) {
    CAPTURE(i, plan.refusals[i]);
    REQUIRE(plan.refusals[i] == "");
    REQUIRE(made.statuses[i] == Status::kDone);
  }
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    CAPTURE(i, cuts[i].crop.left, cuts[i].crop.top, cuts[i].crop.width, cuts[i].crop.height);
    const std::size_t request = beside == Beside::kFiles ? 2 * i : i;
    if (recipe.fidelity == kernels::cuda::Fidelity::kExact)
      REQUIRE((packed_tensor_of(made, plan, request) ==
               reference_tensor(*cuts[i].file, cuts[i].size, recipe, {.crop = cuts[i].crop, .flip = cuts[i].flip})));
    if (beside == Beside::kFiles)
      REQUIRE((packed_tensor_of(made, plan, request) == packed_tensor_of(made, plan, request + 1)));
  }
}

constexpr BatchRecipe kSmallPacked{.size = {40, 32}};

TEST_CASE("packed photographs become the CPU's tensors", "[cuda][packed]") {
  const auto folder = test_data("photos");
  if (!folder) return;
  const auto files = files_in(*folder);
  std::mt19937 random(1);
  const auto every = static_cast<std::size_t>(std::max(1, 12 / rounds(1)));
  for (const kernels::cuda::Fidelity fidelity : {kernels::cuda::Fidelity::kExact, kernels::cuda::Fidelity::kFast}) {
    const BatchRecipe recipe{.size = {64, 64}, .store = {.dtype = kernels::DType::kFloat16}, .fidelity = fidelity};
    for (std::size_t first = 0; first < files.size(); first += 2 * every) {
      std::vector<Cut> cuts;
      for (std::size_t i = first; i < std::min(files.size(), first + 2 * every); i += every)
        cuts.push_back(random_cut(random, files[i].second));
      CAPTURE(first, files[first].first);

      check_packed(recipe, cuts, fidelity == kernels::cuda::Fidelity::kFast ? Beside::kFiles : Beside::kNothing,
                   static_cast<std::uint32_t>(first));
    }
  }
}

struct Made {
  int h, v;
  std::uint32_t channels;
  bool progressive = false;
};
constexpr Made kMade[] = {{1, 1, 3}, {2, 1, 3}, {1, 2, 3}, {2, 2, 3}, {1, 1, 1}};

std::vector<File> make_files(std::mt19937& random, bool progressive) {
  std::vector<File> files;
  for (const Made& made : kMade) {
    const auto side = [&](int most) { return static_cast<std::uint32_t>(9 + below(random, most)); };
    files.push_back(make_jpeg({.pixels = make_pixels(side(700), side(150), made.channels, 5),
                               .h_samp = made.h,
                               .v_samp = made.v,
                               .progressive = progressive}));
  }
  return files;
}

TEST_CASE("packed pictures of every sampling become the tensors of their files", "[cuda][packed]") {
  std::mt19937 random(2);
  for (const kernels::cuda::Fidelity fidelity : {kernels::cuda::Fidelity::kExact, kernels::cuda::Fidelity::kFast}) {
    for (const Filter filter : {Filter::kBilinear, Filter::kLanczos}) {
      const BatchRecipe recipe{.size = {40, 32}, .filter = filter, .fidelity = fidelity};
      for (int round = 0; round < rounds(3); ++round) {
        const std::vector<File> files = make_files(random, false);
        std::vector<Cut> cuts;
        for (const File& file : files) cuts.push_back(random_cut(random, file));
        CAPTURE(static_cast<int>(fidelity), static_cast<int>(filter), round);

        check_packed(recipe, cuts, Beside::kFiles, random());
      }
    }
  }
}

TEST_CASE("progressive files, which the kernels do not decode, have their tensors of packed images", "[cuda][packed]") {
  std::mt19937 random(3);
  const std::vector<File> files = make_files(random, true);
  std::vector<Cut> cuts;
  MixedBatch as_files;
  for (const File& file : files) {
    cuts.push_back(random_cut(random, file));
    as_files.add(file_bytes(file), ImageKind::kJpegFile, cuts.back().crop);
  }
  Planner planner(kSmallPacked);
  REQUIRE(planner.plan(as_files.requests).jobs.empty());

  check_packed(kSmallPacked, cuts, Beside::kNothing, 1);
}

bool has_twelve_bits(const JpegPlane& plane) {
  return std::ranges::all_of(plane.blocks, [](const JpegBlock& block) {
    return std::all_of(block.begin() + 1, block.end(), [](int value) { return value >= -2048 && value <= 2047; });
  });
}

TEST_CASE("random streams that can be packed become the CPU's tensors, but for values beyond 12 bits",
          "[cuda][packed]") {
  std::mt19937 random(4);
  int done = 0;
  for (int round = 0; round < rounds(60); ++round) {
    const File file = write_jpeg(draw_jpeg({.kind = JpegDraw::Kind::kPlain}, random)).bytes;
    const auto coefficients = read_jpeg_coefficients(file);
    if (!coefficients) continue;
    const auto packed = pack_batch(file, *size_of(file));
    if (!packed) continue;
    if (std::ranges::all_of(coefficients->planes, has_twelve_bits)) {
      CAPTURE(round);
      check_packed(kSmallPacked, {random_cut(random, file)}, Beside::kNothing, random());
      ++done;
    }
  }
  REQUIRE(done > 10);
}

TEST_CASE("only the groups that a crop meets are unpacked", "[cuda][packed]") {
  const File file = make_jpeg({.pixels = make_pixels(1600, 800, 3, 1), .h_samp = 1, .v_samp = 1});
  const Packed packed = *pack_batch(file, {1600, 800});
  Planner planner(kSmallPacked);
  MixedBatch whole, part;
  whole.add(packed, ImageKind::kPacked, {0, 0, 1600, 800});
  part.add(packed, ImageKind::kPacked, {600, 400, 40, 32});

  const std::size_t of_whole = planner.plan(whole.requests).groups.size();
  const std::size_t of_part = planner.plan(part.requests).groups.size();

  REQUIRE(of_whole == 100 * 3 * 7);
  REQUIRE(of_part == 4 * 3 * 1);  // 600..640 in blocks 75..79, all of the third group
  check_packed(kSmallPacked, {{&file, {1600, 800}, {600, 400, 40, 32}, Flip::kNone}}, Beside::kFiles, 1);
}

TEST_CASE("packed images that cannot be planned are refused with a reason", "[cuda][packed]") {
  const File file = make_jpeg({.pixels = make_pixels(120, 90, 3, 1)});
  const Packed good = *pack_batch(file, {120, 90});
  const auto reason = [](const Packed& bytes, const Box& crop, const PlannerSettings& settings = {}) {
    Planner planner(kSmallPacked, settings);
    MixedBatch batch;
    batch.add(bytes, ImageKind::kPacked, crop);
    return std::string(planner.plan(batch.requests).refusals[0]);
  };
  Packed odd_size = good, damaged = good;
  const std::size_t sizes = kernels::packed::layout::kHeadBytes + 2 * kernels::packed::layout::kTableBytes;
  const int moved = odd_size[sizes] + 256 * odd_size[sizes + 1];  // the second group has the first one's bytes, too
  std::uint16_t second;
  std::memcpy(&second, &odd_size[sizes + 2], sizeof second);
  second = static_cast<std::uint16_t>(second + moved);
  std::memcpy(&odd_size[sizes + 2], &second, sizeof second);
  odd_size[sizes] = odd_size[sizes + 1] = 0;
  damaged[0] ^= 1;

  CHECK(reason(good, {0, 0, 120, 90}) == "");
  CHECK(reason(good, {0, 0, 121, 90}) == "the crop lies outside the image");
  CHECK(reason(good, {0, 0, 120, 90}, {.most_scan_bytes = static_cast<std::uint32_t>(good.size() - 1)}) ==
        "too large a file");
  CHECK(reason(damaged, {0, 0, 120, 90}) == kBrokenPacked);
  CHECK(reason(odd_size, {0, 0, 120, 90}) == kBrokenPacked);
  CHECK(reason({}, {0, 0, 120, 90}) == kBrokenPacked);
  for (std::size_t size = 0; size < good.size(); size += 13)
    CHECK(reason({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)}, {0, 0, 120, 90}) == kBrokenPacked);
}

TEST_CASE("a damaged packed image is not here, and changes no other image's tensor", "[cuda][packed]") {
  std::mt19937 random(5);
  const File file = make_jpeg({.pixels = make_pixels(150, 100, 3, 1)});
  const Packed good = *pack_batch(file, {150, 100});
  const Box crop{5, 6, 120, 80};
  const auto expected = reference_tensor(file, {150, 100}, kSmallPacked, {.crop = crop});
  Planner planner(kSmallPacked);
  HostRunner runner;
  int not_here = 0, done = 0;
  for (int round = 0; round < rounds(60); ++round) {
    Packed bad = good;
    const std::size_t groups = kernels::packed::layout::groups_start(2, 7 * 4 * 3);
    REQUIRE(groups < bad.size());
    const std::size_t at = groups + random() % (bad.size() - groups);
    for (std::size_t i = at; i < std::min(at + 1 + random() % 20, bad.size()); ++i)
      bad[i] = static_cast<std::uint8_t>(random());
    MixedBatch batch;
    batch.add(good, ImageKind::kPacked, crop);
    batch.add(bad, ImageKind::kPacked, crop);
    batch.add(file_bytes(file), ImageKind::kJpegFile, crop);
    const BatchPlan& plan = planner.plan(batch.requests);
    REQUIRE(plan.jobs.size() == 3);

    const HostBatch made = runner.run(plan, batch.encoded, random());

    REQUIRE(made.statuses[0] == Status::kDone);
    REQUIRE(made.statuses[2] == Status::kDone);
    REQUIRE((packed_tensor_of(made, plan, 0) == expected));
    REQUIRE((packed_tensor_of(made, plan, 2) == expected));
    ++(made.statuses[1] == Status::kDone ? done : not_here);
  }
  REQUIRE(not_here > rounds(5));
  REQUIRE(done > 0);  // a value for another one
}

}  // namespace
}  // namespace millrace::kernels::cuda
