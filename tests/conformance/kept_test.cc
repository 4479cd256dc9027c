// Packed forms in place of files: who takes them makes the file's pixels, and who does not says that the file is to be
// read.
#include <random>

#include "daemon/backend/cpu/making/pack_jpeg.h"
#include "tests/conformance/bench_of_backend.h"
#include "tests/conformance/slow_path.h"
#include "tests/support/pictures/test_images.h"

namespace millrace {
namespace {

std::vector<std::uint8_t> pack(const EncodedImage& file) {
  kernels::jpeg::Decoder decoder;
  kernels::packed::Encoder encoder;
  DecodingInLane libraries;
  Result<std::vector<std::uint8_t>> packed = pack_jpeg(file.bytes.view(), file.info, {}, 0, decoder, encoder,
                                                       Clock::now() + std::chrono::minutes(1), libraries, 0);
  if (!packed) FAIL(packed.error().message);
  return *std::move(packed);
}

// The form without the file's bytes.
EncodedImage form_of(const EncodedImage& file, std::span<const std::uint8_t> packed) {
  EncodedImage form{.bytes = {}, .info = file.info};
  form.kept = CachedForm{CachedKind::kPacked, CachedBlock::copy_of(std::as_bytes(packed), CachedBlock::kPadding)};
  return form;
}

EncodedImage file_of(Size size, std::uint32_t channels, int h, int v, bool progressive, int orientation = 1) {
  return encoded(make_jpeg({.pixels = make_pixels(size.width, size.height, channels, 7),
                            .h_samp = h,
                            .v_samp = v,
                            .progressive = progressive,
                            .exif_orientation = orientation}),
                 ImageFormat::kJpeg, size, orientation);
}

std::vector<EncodedImage> some_files() {
  std::vector<EncodedImage> files;
  for (const bool progressive : {false, true}) {
    for (const int h : {1, 2})
      for (const int v : {1, 2}) files.push_back(file_of({300, 90}, 3, h, v, progressive));
    files.push_back(file_of({70, 200}, 1, 1, 1, progressive));
    for (int orientation = 2; orientation <= 8; ++orientation)
      files.push_back(file_of({310, 80}, 3, 2, 1 + orientation % 2, progressive, orientation));
  }
  return files;
}

SampleGeometry random_geometry(std::mt19937& random, Size size, Size output) {
  const auto below = [&](std::uint32_t bound) { return static_cast<std::int32_t>(random() % bound); };
  const std::int32_t left = below(size.width), top = below(size.height);
  return {.crop = {left, top, 1 + below(size.width - static_cast<std::uint32_t>(left)),
                   1 + below(size.height - static_cast<std::uint32_t>(top))},
          .resized = {output.width + 7, output.height + 5},
          .window = {3, 2, static_cast<std::int32_t>(output.width), static_cast<std::int32_t>(output.height)},
          .flip = below(2) == 0};
}

// Neither made nor an error of the sample: its file is read, or another backend has it.
void check_left_alone(const SampleOutcome& outcome) {
  REQUIRE(outcome.error);
  REQUIRE((outcome.read_again || outcome.error->code == Code::kUnsupported));
}

}  // namespace

TEST_CASE("a packed form stands in for its file, progressive ones included", "[conformance]") {
  const std::vector<EncodedImage> files = some_files();
  for (const BackendUnderTest& row : testable_backends()) {
    INFO(row.name);
    const std::unique_ptr<Backend> backend = start(row);
    std::mt19937 random(1);
    JobOnTheBench bench(Recipe{.dtype = DType::kFloat32});
    for (int round = 0; round < 3; ++round) {
      for (const EncodedImage& file : files)
        bench.add(form_of(file, pack(file)), random_geometry(random, oriented_size(file.info), {30, 24}));
    }
    Collector collector;

    REQUIRE(backend->try_submit(bench.job(collector)));

    const Finished finished = collector.wait_for_one();
    for (std::size_t i = 0; i < finished.outcomes.size(); ++i) {
      CAPTURE(i);
      const SampleTask& task = finished.tasks[i];
      REQUIRE(bench.tensors[i]->intact());
      if (is_refused(*backend, task, *bench.recipe, finished.outcomes[i]) || !row.takes_packed) {
        REQUIRE_FALSE(row.takes_packed);
        check_left_alone(finished.outcomes[i]);
        continue;
      }
      if (finished.outcomes[i].error) FAIL(finished.outcomes[i].error->message);
      REQUIRE_FALSE(finished.outcomes[i].read_again);
      REQUIRE((bench.tensors[i]->copy() == make_slowly(files[i % files.size()], task.geometry, *bench.recipe)));
    }
  }
}

TEST_CASE("a packed form that is no use is an error of its own, and the file is read where verdicts are others'",
          "[conformance]") {
  const EncodedImage file = file_of({90, 60}, 3, 2, 2, false), other = file_of({90, 61}, 3, 2, 2, false);
  const std::vector<std::uint8_t> good = pack(file);
  std::vector<std::uint8_t> damaged_head = good, damaged_groups = good;
  damaged_head[0] ^= 1;
  std::fill(damaged_groups.end() - 200, damaged_groups.end(), std::uint8_t{0xFF});
  const std::vector<std::uint8_t> cut(good.begin(), good.end() - 1), empty;
  for (const BackendUnderTest& row : testable_backends()) {
    if (!row.takes_packed) continue;
    INFO(row.name);
    const std::unique_ptr<Backend> backend = start(row);
    JobOnTheBench bench;
    const SampleGeometry geometry = resized_whole(file, {16, 16});
    bench.add(form_of(file, good), geometry);
    for (const auto& bytes : {damaged_head, damaged_groups, cut, empty, pack(other)})
      bench.add(form_of(file, bytes), geometry);
    bench.add(form_of(file, good), geometry);
    EncodedImage both = form_of(file, damaged_head);  // there are bytes, too, for the backend that makes it
    both.bytes = encoded({file.bytes.view().begin(), file.bytes.view().end()}, ImageFormat::kJpeg, {90, 60}).bytes;
    bench.add(std::move(both), geometry);
    const std::vector<std::byte> expected = make_slowly(file, geometry, *bench.recipe);
    Collector collector;

    REQUIRE(backend->try_submit(bench.job(collector)));

    const Finished finished = collector.wait_for_one();
    for (const std::size_t i : {std::size_t{0}, std::size_t{6}}) {
      REQUIRE_FALSE(finished.outcomes[i].error);
      REQUIRE((bench.tensors[i]->copy() == expected));
    }
    for (std::size_t i = 1; i <= 5; ++i) {
      CAPTURE(i);
      REQUIRE(bench.tensors[i]->intact());
      // Its checksum is compared before it gets here: a processor need not see that coefficients are damaged.
      if (i == 2 && !row.leaves_verdicts) continue;
      REQUIRE(finished.outcomes[i].error);
      if (row.leaves_verdicts) REQUIRE(finished.outcomes[i].error->code == Code::kUnsupported);
      if (row.leaves_verdicts) REQUIRE(finished.outcomes[i].read_again);
    }
    REQUIRE_FALSE(finished.outcomes[7].read_again);
  }
}

}  // namespace millrace
