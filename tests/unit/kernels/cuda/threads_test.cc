// The CUDA kernels with a thread of this process for each of a GPU's (thread_block.h): what they make is what the
// host executor makes, byte for byte; ThreadSanitizer sees what their threads share.
#include <catch2/catch.hpp>
#include <chrono>
#include <deque>

#include "kernels/cpu/jpeg/decoder.h"
#include "kernels/cuda/plan/batch_run.h"
#include "kernels/jpeg/header.h"
#include "tests/support/pictures/test_images.h"
#include "tests/unit/kernels/cuda/thread_block.h"
#include "tests/unit/kernels/packed/packed_rig.h"

namespace millrace::kernels::cuda {
namespace {

using EncodedFile = std::vector<std::byte>;

constexpr int kTokeniseThreads = 32;  // windows of 8 KB

// The executor. Blocks of few threads run side by side.
struct OnThreads {
  int side_by_side = 0;  // 0: three where blocks have few threads, else one

  template <class Kernel>
  void operator()(const Grid& grid, const Kernel& kernel) const {
    const int usual = grid.threads > 2 * kWarp ? 1 : 3;
    run_on_threads({grid.blocks, grid.threads, side_by_side == 0 ? usual : side_by_side},
                   [&](ThreadBlock& block) { kernel(block); });
  }
};
struct OnHost {
  template <class Kernel>
  void operator()(const Grid& grid, const Kernel& kernel) const {
    run_grid(grid, kernel);
  }
};

jpeg::FileBytes bytes_of(const EncodedFile& file) {
  return {reinterpret_cast<const std::uint8_t*>(file.data()), file.size()};
}

// Files and packed images of unlike kinds in one batch, their crops all but the outermost pixels of all but the smallest.
class ThreadsBatch {
 public:
  explicit ThreadsBatch(const BatchRecipe& recipe, int wanted_tiles = 1)
      : planner_(recipe, {.wanted_tiles = static_cast<std::uint32_t>(wanted_tiles)}) {}

  ImageRequest& add(const JpegSpec& spec) {
    const EncodedFile& file = files_.emplace_back(make_jpeg(spec));
    return add(bytes_of(file), ImageKind::kJpegFile, spec);
  }
  ImageRequest& add_packed(const JpegSpec& spec) {
    static packed::Encoder encoder;
    const EncodedFile file = make_jpeg(spec);
    const packed::Bytes& bytes = packed_.emplace_back(packed::pack(encoder, packed::read_picture(file)));
    REQUIRE_FALSE(bytes.empty());
    return add(bytes, ImageKind::kPacked, spec);
  }
  ImageRequest& add_indexed(const JpegSpec& spec) {
    static jpeg::Decoder decoder;
    ImageRequest& request = add(spec);
    const auto header = jpeg::read_header(request.file_untrusted);
    REQUIRE(header);
    const Size size = header->size;
    std::vector<std::uint8_t> pixels(static_cast<std::size_t>(size.width) * static_cast<std::size_t>(size.height) * 3);
    jpeg::Seeking& index = indexes_.emplace_back(jpeg::Seeking{.owner = 3});
    REQUIRE(decoder.decode(*header, {0, 0, size.width, size.height},
                           {pixels.data(), size.width, size.height, 3, std::ptrdiff_t{size.width} * 3},
                           std::chrono::steady_clock::time_point::max(), &index) == jpeg::Outcome::kDecoded);
    request.index_untrusted = index.made;
    request.index_owner = 3;
    return request;
  }
  void damage(std::size_t request) {
    const auto& of = requests_[request];
    for (std::size_t i = of.file_untrusted.size() / 2; i + 2 < of.file_untrusted.size(); ++i)
      encoded_[of.at + i] = 0xA5;
  }

  const BatchPlan& plan() {
    const BatchPlan& made = planner_.plan(requests_);
    put_tables(made, tables_);
    for (const std::string_view refusal : made.refusals) REQUIRE(refusal == "");
    return made;
  }
  BatchRun run(const BatchPlan& plan) const { return {plan, tables_, encoded_, kTokeniseThreads}; }

 private:
  ImageRequest& add(std::span<const std::uint8_t> bytes, ImageKind kind, const JpegSpec& spec) {
    encoded_.resize(encoded_.size() + 3 + requests_.size() % 7, 0xFF);
    const auto width = static_cast<int>(spec.pixels.width), height = static_cast<int>(spec.pixels.height);
    const int edge = width > 2 && height > 2 ? 1 : 0;
    requests_.push_back({.file_untrusted = bytes,
                         .at = encoded_.size(),
                         .crop = {edge, edge, width - 2 * edge, height - 2 * edge},
                         .kind = kind});
    encoded_.insert(encoded_.end(), bytes.begin(), bytes.end());
    return requests_.back();
  }

  Planner planner_;
  std::vector<DecodeTable> tables_;
  std::deque<EncodedFile> files_;
  std::deque<packed::Bytes> packed_;
  std::deque<jpeg::Seeking> indexes_;
  std::vector<ImageRequest> requests_;
  std::vector<std::uint8_t> encoded_;
};

// The whole batch on threads and on the host executor. How many images are done.
std::size_t check_on_threads(ThreadsBatch& batch, const OnThreads& threads = {}) {
  const BatchPlan& plan = batch.plan();
  BatchRun expected = batch.run(plan), made = batch.run(plan);
  expected.all(OnHost{});

  made.all(threads);

  REQUIRE((made.batch().statuses == expected.batch().statuses));
  std::size_t done = 0;
  for (std::size_t job = 0; job < plan.jobs.size(); ++job) {
    if (made.batch().statuses[job] != Status::kDone) continue;
    ++done;
    const std::size_t at = plan.requests[job] * plan.tensor_bytes;
    CAPTURE(job);
    REQUIRE(std::memcmp(made.batch().tensors.data() + at, expected.batch().tensors.data() + at, plan.tensor_bytes) ==
            0);
  }
  return done;
}

JpegSpec small_jpeg(std::uint32_t width, std::uint32_t height, int h = 2, int v = 2, std::uint32_t channels = 3) {
  return {.pixels = make_pixels(width, height, channels, width + height), .h_samp = h, .v_samp = v};
}
JpegSpec restarting(JpegSpec spec, int interval) {
  spec.restart_interval = interval;
  return spec;
}

constexpr BatchRecipe kSmallTensors{.size = {24, 16}};

TEST_CASE("64 packed images in a row take no phase of the tokeniser, and files on both sides are decoded",
          "[cuda][threads]") {
  ThreadsBatch batch(kSmallTensors);
  batch.add(small_jpeg(40, 30));
  for (int i = 0; i < 64; ++i) batch.add_packed(small_jpeg(16, 16));
  batch.add(small_jpeg(50, 30));
  const BatchPlan& plan = batch.plan();
  REQUIRE(plan.scans == 2);
  BatchRun expected = batch.run(plan);
  expected.tokenise(OnHost{});

  for (const int side_by_side : {1, 1, 3, 3}) {
    BatchRun made = batch.run(plan);
    made.tokenise(OnThreads{side_by_side});

    REQUIRE((made.batch().statuses == expected.batch().statuses));
    REQUIRE((made.tokens() == expected.tokens()));
    REQUIRE(std::memcmp(made.blocks().data(), expected.blocks().data(), plan.blocks * sizeof(BlockEntry)) == 0);
  }
}

TEST_CASE("files and packed images by turns become the host executor's tensors", "[cuda][threads]") {
  ThreadsBatch batch(kSmallTensors);
  batch.add_packed(small_jpeg(33, 20));
  batch.add(small_jpeg(200, 120, 1, 1));  // several windows
  batch.add(small_jpeg(240, 160));        // which take rounds
  batch.add_packed(small_jpeg(40, 30, 2, 1));
  batch.add_packed(small_jpeg(300, 20, 1, 1));  // rows of several groups
  batch.add(small_jpeg(60, 44, 1, 1, 1));
  batch.add(small_jpeg(70, 40, 4, 1));
  batch.add_packed(small_jpeg(30, 30, 1, 1, 1));
  batch.add_packed(small_jpeg(30, 31, 1, 2));

  REQUIRE(check_on_threads(batch) == 9);
}

TEST_CASE("restart intervals and seek indexes, a thread each, become the host executor's tensors", "[cuda][threads]") {
  ThreadsBatch batch(kSmallTensors);
  batch.add(restarting(small_jpeg(90, 70), 1));
  batch.add(restarting(small_jpeg(120, 60, 1, 1), 2));  // more intervals than threads
  batch.add_packed(small_jpeg(20, 20));
  batch.add(restarting(small_jpeg(64, 40, 2, 1), 9000));
  batch.add_indexed(small_jpeg(200, 100, 1, 1));
  batch.add_indexed(small_jpeg(160, 90));
  batch.add(small_jpeg(50, 40, 1, 2));
  REQUIRE(batch.plan().segments.size() > 100);

  REQUIRE(check_on_threads(batch) == 7);
}

TEST_CASE("turned pictures and patches become the host executor's tensors", "[cuda][threads]") {
  BatchRecipe recipe{.size = {24, 24}, .store = {.dtype = DType::kFloat16}};
  recipe.store.patches = Patches{4, 6, 2, 2};
  ThreadsBatch batch(recipe);
  for (int tag = 1; tag <= 8; ++tag) {
    const JpegSpec spec = small_jpeg(50, 50, 1 + tag % 2, 1 + tag / 2 % 2);
    ImageRequest& request = tag % 3 == 0 ? batch.add_packed(spec) : batch.add(spec);
    request.orientation = orientation_of(tag);
    request.flip = tag % 2 == 0 ? Flip::kNone : Flip::kHorizontal;
  }

  REQUIRE(check_on_threads(batch) == 8);
}

TEST_CASE("small pictures, and tiles of one tensor side by side, become the host executor's tensors",
          "[cuda][threads]") {
  for (const Fidelity fidelity : {Fidelity::kExact, Fidelity::kFast}) {
    const Filter filter = fidelity == Fidelity::kExact ? Filter::kLanczos : Filter::kBilinear;
    ThreadsBatch batch({.size = {21, 17}, .filter = filter, .fidelity = fidelity}, 12);
    batch.add(small_jpeg(1, 1, 1, 1));
    batch.add(small_jpeg(3, 5, 1, 2));
    batch.add(small_jpeg(6, 3));
    batch.add_packed(small_jpeg(8, 8, 1, 1));
    batch.add_packed(small_jpeg(17, 2));
    batch.add(small_jpeg(20, 200));  // two tiles; Pillow filters its rows first
    REQUIRE(batch.plan().tiles.size() > batch.plan().jobs.size());

    REQUIRE(check_on_threads(batch, {.side_by_side = 2}) == 6);
  }
}

TEST_CASE("a damaged file leaves its block's threads together", "[cuda][threads]") {
  ThreadsBatch batch(kSmallTensors);
  batch.add(small_jpeg(60, 40));
  batch.add(small_jpeg(90, 70));
  batch.add(restarting(small_jpeg(90, 70), 3));
  batch.add_packed(small_jpeg(90, 70));
  batch.add(small_jpeg(40, 60));
  for (const std::size_t request : {1, 2, 3}) batch.damage(request);

  REQUIRE(check_on_threads(batch) == 2);
}

}  // namespace
}  // namespace millrace::kernels::cuda
