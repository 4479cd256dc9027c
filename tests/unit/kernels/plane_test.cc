// The resampling of planes: every instruction set against the plain loops, the plain loops against the definition in
// double precision and against Pillow's.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/plane/plane_kernels.h"
#include "kernels/cpu/plane/plane_resample.h"
#include "kernels/cpu/store.h"
#include "kernels/cpu/workspace.h"
#include "kernels/tensor/reference.h"
#include "tests/support/skip.h"

using namespace millrace::kernels;

namespace {

constexpr Filter kFilters[] = {Filter::kBox, Filter::kBilinear, Filter::kHamming, Filter::kBicubic, Filter::kLanczos};

int pick(std::mt19937& random, int low, int high) {
  return std::uniform_int_distribution<int>(low, high)(random);
}
int random_side(std::mt19937& random, int largest) {
  return pick(random, 1, pick(random, 1, largest));
}

std::vector<std::uint8_t> random_bytes(std::mt19937& random, std::size_t count) {
  const bool edges = random() % 3 == 0;
  std::vector<std::uint8_t> bytes(count);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(edges ? (random() % 2) * 255 : random());
  return bytes;
}

std::vector<Target> targets_beside_scalar() {
  std::vector<Target> targets;
  for (const Target target : {Target::kAvx2, Target::kAvx512Bw, Target::kAvx512}) {
    if (is_available(target))
      targets.push_back(target);
    else
      millrace::skip_loudly("instructions: this processor lacks " + std::string(name_of(target)));
  }
  return targets;
}

// One plane of an image, with room behind each row.
struct Plane {
  int width, height;
  std::ptrdiff_t stride;
  std::vector<std::uint8_t> bytes;

  Plane(std::mt19937& random, int columns, int rows) : width(columns), height(rows), stride(columns + kPlaneSlack) {
    bytes = random_bytes(random, static_cast<std::size_t>(stride) * static_cast<std::size_t>(rows));
  }
  // Upwards from left to right and from top to bottom, at once or step by step.
  void make_stairs(std::mt19937& random) {
    const int x_steps = pick(random, 1, 20), y_steps = pick(random, 1, 20);
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        const int across = (x * x_steps + width / 2) / width * 128 / x_steps;
        const int down = (y * y_steps + height / 2) / height * 127 / y_steps;
        bytes[static_cast<std::size_t>(y * stride + x)] = static_cast<std::uint8_t>(across + down);
      }
    }
  }
  SamplePlane view() const { return {bytes.data(), stride, 0}; }
  std::uint8_t at(int x, int y) const { return bytes[static_cast<std::size_t>(y * stride + x)]; }
};

// A crop of an image and what becomes of it.
struct Case {
  Size image;
  ResampleSpec resample;
  int left = 0, top = 0;
  Flip flip = Flip::kNone;
};

Case random_case(std::mt19937& random, int largest) {
  Case one;
  one.image = {random_side(random, largest), random_side(random, largest)};
  one.left = pick(random, 0, one.image.width - 1);
  one.top = pick(random, 0, one.image.height - 1);
  one.resample.source = {pick(random, 1, one.image.width - one.left), pick(random, 1, one.image.height - one.top)};
  one.resample.target = {random_side(random, 2 * largest), random_side(random, largest)};
  const Size target = one.resample.target;
  const int width = pick(random, 1, target.width), height = pick(random, 1, target.height);
  one.resample.window = {pick(random, 0, target.width - width), pick(random, 0, target.height - height), width, height};
  one.resample.filter = kFilters[random() % std::size(kFilters)];
  one.flip = random() % 2 == 0 ? Flip::kNone : Flip::kHorizontal;
  return one;
}

std::string describe(const Case& one) {
  const auto text = [](int number) { return std::to_string(number); };
  const Box& window = one.resample.window;
  return "filter " + text(static_cast<int>(one.resample.filter)) + " crop " + text(one.resample.source.width) + "x" +
         text(one.resample.source.height) + " at " + text(one.left) + "," + text(one.top) + " of " +
         text(one.image.width) + "x" + text(one.image.height) + " -> " + text(one.resample.target.width) + "x" +
         text(one.resample.target.height) + " window " + text(window.left) + "," + text(window.top) + " " +
         text(window.width) + "x" + text(window.height);
}

using Rows = std::vector<std::vector<std::uint8_t>>;

auto collect(Rows& rows, int planes, int width) {
  return [&rows, planes, width](int y, std::uint8_t* const* row) {
    if (y != static_cast<int>(rows.size())) FAIL("row " << y << " after " << rows.size());
    std::vector<std::uint8_t> all;
    for (int i = 0; i < planes; ++i) all.insert(all.end(), row[i], row[i] + width);
    rows.push_back(std::move(all));
  };
}

// --- the definition, in double precision ---

double rounded(double value) {
  return std::clamp(std::floor(value + 0.5), 0.0, 255.0);
}

// Chroma of half size at pixel `x`, as libjpeg smooths it.
struct Smoothed {
  int near, far;
  static Smoothed at(int x, int count) { return {x / 2, std::clamp(x % 2 == 0 ? x / 2 - 1 : x / 2 + 1, 0, count - 1)}; }
};

double pixel(const Plane& plane, const PlaneGrid& columns, const PlaneGrid& rows, int x, int y) {
  const Smoothed across = columns.smoothed ? Smoothed::at(x, plane.width) : Smoothed{x, x};
  const Smoothed down = rows.smoothed ? Smoothed::at(y, plane.height) : Smoothed{y, y};
  return (9.0 * plane.at(across.near, down.near) + 3.0 * plane.at(across.far, down.near) +
          3.0 * plane.at(across.near, down.far) + plane.at(across.far, down.far)) /
         16;
}

Rows defined(const Case& one, const Plane& plane, const PlaneGrid& columns, const PlaneGrid& rows) {
  const ResampleSpec& spec = one.resample;
  const AxisWeights across = axis_weights(
      {Axis::kColumns, 1, spec.source.width, spec.target.width, spec.window.left, spec.window.width, spec.filter});
  const AxisWeights down = axis_weights(
      {Axis::kRows, 1, spec.source.height, spec.target.height, spec.window.top, spec.window.height, spec.filter});
  const auto weighted = [](const AxisWeights& weights, int i, auto&& value) {
    double sum = 0;
    for (int t = 0; t < weights.taps; ++t) {
      const std::size_t at = static_cast<std::size_t>(i);
      sum += weights.weight[at * static_cast<std::size_t>(weights.taps) + static_cast<std::size_t>(t)] *
             value(weights.start[at] + t);
    }
    return sum / (1 << kPrecisionBits);
  };
  // Rows are rounded where they are filtered, in the plane's own columns: chroma is smoothed across afterwards.
  const auto filtered = [&](int column, int y) {
    return rounded(
        weighted(down, y, [&](int row) { return pixel(plane, {.count = plane.width}, rows, column, one.top + row); }));
  };
  Rows result;
  for (int y = 0; y < spec.window.height; ++y) {
    std::vector<double> row(static_cast<std::size_t>(plane.width));
    for (int x = 0; x < plane.width; ++x) row[static_cast<std::size_t>(x)] = filtered(x, y);
    std::vector<std::uint8_t> out;
    for (int i = 0; i < spec.window.width; ++i) {
      const int x = one.flip == Flip::kHorizontal ? spec.window.width - 1 - i : i;
      const double sum = weighted(across, x, [&](int column) {
        if (!columns.smoothed) return row[static_cast<std::size_t>(one.left + column)];
        const Smoothed at = Smoothed::at(one.left + column, plane.width);
        return 0.75 * row[static_cast<std::size_t>(at.near)] + 0.25 * row[static_cast<std::size_t>(at.far)];
      });
      out.push_back(static_cast<std::uint8_t>(rounded(sum)));
    }
    result.push_back(std::move(out));
  }
  return result;
}

int largest_difference(const Rows& a, const Rows& b) {
  if (a.size() != b.size()) return 256;
  int most = 0;
  for (std::size_t y = 0; y < a.size(); ++y) {
    if (a[y].size() != b[y].size()) return 256;
    for (std::size_t x = 0; x < a[y].size(); ++x) most = std::max(most, std::abs(a[y][x] - b[y][x]));
  }
  return most;
}

// The one plane of a layout of one, in `steps` portions.
Rows resampled(PlaneResampler& resampler, const Case& one, const Plane& plane, const PlaneGrid& columns,
               const PlaneGrid& rows, int steps = 1) {
  PlaneLayout layout;
  layout.columns[0] = columns;
  layout.rows[0] = rows;
  resampler.begin({one.resample, one.left, one.top, layout, one.flip});
  Rows result;
  const auto sink = collect(result, 1, one.resample.window.width);
  const SamplePlane view = plane.view();
  for (int step = 1; step <= steps; ++step) {
    const int ready = plane.height * step / steps;
    resampler.take(&view, &ready, plane_row_sink(sink));
  }
  CHECK(resampler.is_complete());
  return result;
}

PlaneGrid full(int count) {
  return {.step = 1, .count = count};
}
PlaneGrid half(int count) {
  return {.step = 2, .count = (count + 1) / 2, .smoothed = true};
}

}  // namespace

TEST_CASE("planes are resampled as defined, chroma of half size as if it were smoothed first", "[plane]") {
  std::mt19937 random(1);
  PlaneResampler resampler(Target::kScalar);
  for (int i = 0; i < 600; ++i) {
    const Case one = random_case(random, 60);
    const PlaneGrid columns = random() % 2 == 0 ? full(one.image.width) : half(one.image.width);
    const PlaneGrid rows = random() % 2 == 0 ? full(one.image.height) : half(one.image.height);
    Plane plane(random, columns.count, rows.count);
    const bool narrow = one.resample.filter == Filter::kBilinear || one.resample.filter == Filter::kHamming;
    if (narrow) plane.make_stairs(random);

    const Rows made = resampled(resampler, one, plane, columns, rows);

    INFO(describe(one) << (columns.smoothed ? " h" : "") << (rows.smoothed ? " v" : ""));
    REQUIRE(largest_difference(made, defined(one, plane, columns, rows)) <= (narrow ? 3 : 2));
  }
}

TEST_CASE("pictures of pixels come out as Pillow's to within three levels, whose edges are a picture's whole range",
          "[plane]") {
  std::mt19937 random(2);
  Workspace workspace(Target::kScalar);
  PlaneResampler resampler(Target::kScalar);
  for (int i = 0; i < 300; ++i) {
    Case one = random_case(random, 80);
    one.image = one.resample.source;
    one.left = one.top = 0;
    one.flip = Flip::kNone;
    one.resample.filter = kFilters[random() % 3];
    one.resample.channels = random() % 2 == 0 ? 1 : 3;
    const int channels = one.resample.channels;
    const std::ptrdiff_t stride = std::ptrdiff_t{one.image.width} * channels + 64;
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(stride * one.image.height));
    Plane stairs(random, one.image.width, one.image.height);
    stairs.make_stairs(random);
    for (int y = 0; y < one.image.height; ++y) {
      for (int x = 0; x < one.image.width * channels; ++x) {
        const std::uint8_t level = stairs.at(x / channels, y);
        bytes[static_cast<std::size_t>(y * stride + x)] = x % channels == 1 ? static_cast<std::uint8_t>(~level) : level;
      }
    }
    const U8View image{bytes.data(), one.image.width, one.image.height, channels, stride};

    Rows made, expected;
    const auto width = static_cast<std::size_t>(one.resample.window.width * channels);
    const auto keep = [width](Rows& rows) {
      return [&rows, width](int, const std::uint8_t* row) { rows.emplace_back(row, row + width); };
    };
    const auto sink = keep(made);
    resampler.run(one.resample, Flip::kNone, image, row_sink(sink));
    resample(workspace.plan(one.resample), image, workspace, keep(expected));

    INFO(describe(one) << " channels " << channels);
    REQUIRE(largest_difference(made, expected) <= 3);
  }
}

TEST_CASE("every instruction set resamples planes to the same bytes", "[plane]") {
  PlaneResampler plain(Target::kScalar);
  for (const Target target : targets_beside_scalar()) {
    std::mt19937 random(3);
    PlaneResampler resampler(target);
    for (int i = 0; i < 1500; ++i) {
      const Case one = random_case(random, i % 50 == 0 ? 900 : 120);
      const bool coarse = random() % 4 == 0;
      const int step = 1 << (random() % 4);
      const PlaneGrid grids[] = {full(one.image.width), half(one.image.width), full(one.image.height),
                                 half(one.image.height)};
      const PlaneGrid columns =
          coarse ? PlaneGrid{.step = step, .count = (one.image.width + step - 1) / step} : grids[random() % 2];
      const PlaneGrid rows =
          coarse ? PlaneGrid{.step = step, .count = (one.image.height + step - 1) / step} : grids[2 + random() % 2];
      const Plane plane(random, columns.count, rows.count);

      const Rows made = resampled(resampler, one, plane, columns, rows);

      INFO(name_of(target) << " " << describe(one) << " step " << columns.step << " " << rows.step);
      REQUIRE(made == resampled(plain, one, plane, columns, rows));
    }
  }
}

TEST_CASE("every instruction set resamples pixels to the same bytes", "[plane]") {
  PlaneResampler plain(Target::kScalar);
  for (const Target target : targets_beside_scalar()) {
    std::mt19937 random(9);
    PlaneResampler resampler(target);
    for (int i = 0; i < 600; ++i) {
      Case one = random_case(random, i % 50 == 0 ? 900 : 120);
      one.resample.source = one.image;
      const int channels = one.resample.channels = random() % 4 == 0 ? 1 : 3;
      const std::ptrdiff_t stride = std::ptrdiff_t{one.image.width} * channels;
      const auto bytes = random_bytes(random, static_cast<std::size_t>(stride * one.image.height + 64));
      const U8View image{bytes.data(), one.image.width, one.image.height, channels, stride};
      const auto width = static_cast<std::size_t>(one.resample.window.width * channels);
      Rows made, expected;
      const auto take = [&](int, const std::uint8_t* row) { made.emplace_back(row, row + width); };
      const auto take_plain = [&](int, const std::uint8_t* row) { expected.emplace_back(row, row + width); };

      resampler.run(one.resample, one.flip, image, row_sink(take));
      plain.run(one.resample, one.flip, image, row_sink(take_plain));

      INFO(name_of(target) << " " << describe(one) << " channels " << channels);
      REQUIRE(made == expected);
    }
  }
}

// The outermost outputs have taps beyond the picture. With AddressSanitizer: none is read beyond the resampler's memory.
TEST_CASE("pictures thousands of times as wide as what becomes of them are resampled to the same bytes", "[plane]") {
  PlaneResampler plain(Target::kScalar);
  std::mt19937 random(11);
  for (const Target target : targets_beside_scalar()) {
    for (const Filter filter : kFilters) {
      const Size source{pick(random, 3000, 9000), 2};
      const Size end{pick(random, 1, 3), 2};
      const auto bytes = random_bytes(random, static_cast<std::size_t>(3 * source.width * source.height + 64));
      const U8View image{bytes.data(), source.width, source.height, 3, std::ptrdiff_t{3} * source.width};
      const ResampleSpec spec{.source = source, .target = end, .window = whole(end), .filter = filter};
      Rows made, expected;
      const auto width = static_cast<std::size_t>(3 * end.width);
      const auto take = [&](int, const std::uint8_t* row) { made.emplace_back(row, row + width); };
      const auto take_plain = [&](int, const std::uint8_t* row) { expected.emplace_back(row, row + width); };

      PlaneResampler(target).run(spec, Flip::kNone, image, row_sink(take));
      plain.run(spec, Flip::kNone, image, row_sink(take_plain));

      INFO(name_of(target) << " filter " << static_cast<int>(filter) << " width " << source.width);
      REQUIRE(made == expected);
    }
  }
}

TEST_CASE("every instruction set takes pixels apart, converts them and puts them together alike", "[plane]") {
  for (const Target target : targets_beside_scalar()) {
    std::mt19937 random(4);
    for (int i = 0; i < 200; ++i) {
      const int count = pick(random, 1, 300);
      const auto room = static_cast<std::size_t>(count + kPlaneSlack);
      std::vector<std::uint8_t> ours[3], plain[3], pixels(3 * room), expected(3 * room);
      for (int c = 0; c < 3; ++c) ours[c] = plain[c] = random_bytes(random, room);
      std::uint8_t* const of_ours[3] = {ours[0].data(), ours[1].data(), ours[2].data()};
      std::uint8_t* const of_plain[3] = {plain[0].data(), plain[1].data(), plain[2].data()};

      plane_kernels(target).to_pixels(of_ours, count, pixels.data());
      scalar_plane_kernels().to_pixels(of_plain, count, expected.data());
      plane_kernels(target).to_rgb(of_ours, count);
      scalar_plane_kernels().to_rgb(of_plain, count);

      REQUIRE(std::equal(pixels.begin(), pixels.begin() + 3 * count, expected.begin()));
      for (int c = 0; c < 3; ++c) REQUIRE(std::equal(ours[c].begin(), ours[c].begin() + count, plain[c].begin()));
    }
  }
}

TEST_CASE("rows that come in portions make the same picture", "[plane]") {
  std::mt19937 random(5);
  PlaneResampler resampler, other;
  for (int i = 0; i < 200; ++i) {
    const Case one = random_case(random, 100);
    const PlaneGrid columns = half(one.image.width), rows = half(one.image.height);
    const Plane plane(random, columns.count, rows.count);

    const Rows made = resampled(resampler, one, plane, columns, rows, pick(random, 2, 9));

    INFO(describe(one));
    REQUIRE(made == resampled(other, one, plane, columns, rows));
  }
}

TEST_CASE("samples of several pixels stand for what they cover", "[plane]") {
  std::mt19937 random(6);
  PlaneResampler resampler;
  for (int i = 0; i < 300; ++i) {
    Case one = random_case(random, 300);
    one.resample.filter = kFilters[random() % 3];
    const int step = 1 << (1 + random() % 3);
    const PlaneGrid columns{.step = step, .count = (one.image.width + step - 1) / step};
    const PlaneGrid rows{.step = step, .count = (one.image.height + step - 1) / step};
    Plane flat(random, columns.count, rows.count);
    const int level = pick(random, 0, 255);
    std::fill(flat.bytes.begin(), flat.bytes.end(), static_cast<std::uint8_t>(level));

    const Rows made = resampled(resampler, one, flat, columns, rows);

    INFO(describe(one) << " step " << step << " level " << level);
    for (const auto& row : made)
      REQUIRE(std::all_of(row.begin(), row.end(), [&](std::uint8_t value) { return value == level; }));
  }
}

TEST_CASE("a slope keeps its place when its samples cover several pixels", "[plane]") {
  PlaneResampler resampler;
  for (const int step : {2, 4, 8}) {
    // Value x / 8 at pixel x, in a crop that does not begin with a sample.
    const Case one{.image = {2000, 64}, .resample = {1, {1801, 64}, {90, 2}, {10, 0, 70, 2}}, .left = 101};
    const PlaneGrid columns{.step = step, .count = 2000 / step}, rows{.step = step, .count = 64 / step};
    std::mt19937 random(7);
    Plane slope(random, columns.count, rows.count);
    for (int y = 0; y < slope.height; ++y) {
      for (int x = 0; x < slope.width; ++x)
        slope.bytes[static_cast<std::size_t>(y * slope.stride + x)] =
            static_cast<std::uint8_t>(((x + 0.5) * step - 0.5) / 8 + 0.5);
    }

    const Rows made = resampled(resampler, one, slope, columns, rows);

    for (int x = 0; x < 70; ++x) {
      const double centre = 101 + (10 + x + 0.5) * 1801 / 90 - 0.5;
      INFO("step " << step << " output " << x);
      REQUIRE(std::fabs(made[0][static_cast<std::size_t>(x)] - centre / 8) <= 1);
    }
  }
}
