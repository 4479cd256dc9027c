#include "hls/model/work.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>

namespace millrace::hls::model {
namespace {

constexpr int kSide = 224;       // of the tensors
constexpr int kBatchShare = 12;  // bytes of a batch's head and of a completion that an image has
constexpr int kGroup = 32;       // blocks of a packed group
constexpr int kBlock = kernels::jpeg::kBlock;

struct Range {
  int begin = 0, end = 0;  // MCU columns or rows
  bool has(int at) const { return at >= begin && at < end; }
};

// MCUs of `side` pixels that a crop meets; upsampled chroma needs a pixel more.
Range mcu_range(int first, int count, int side, int most) {
  const int margin = side > kBlock ? 1 : 0;
  return {std::max(0, first - margin) / side, std::min(most, (first + count + margin + side - 1) / side)};
}

Range in_groups(Range range, int mcus_a_group, int most) {
  return {range.begin / mcus_a_group * mcus_a_group,
          std::min(most, (range.end + mcus_a_group - 1) / mcus_a_group * mcus_a_group)};
}

int overlap(int begin, int end, int first, int count) {
  return std::max(0, std::min(end, first + count) - std::max(begin, first));
}

// Bytes of an axis table: a start and the weights of a triangle filter, as hls/wire/words.h has them.
std::int64_t axis_bytes(int source) {
  const double scale = std::max(1.0, static_cast<double>(source) / kSide);
  const auto taps = static_cast<std::int64_t>(std::ceil(scale)) * 2 + 1;
  return kSide * (taps + 1) * 4;
}

struct Plan {
  const Picture& picture;
  const Crop& crop;
  WorkSpec spec;
  bool makes_tensor;
  double bytes_a_bit;  // as it is stored
  Range columns, rows, luma_groups, chroma_groups;
};

Plan plan_of(const Picture& picture, const Crop& crop, const WorkSpec& spec) {
  const std::int64_t stored =
      spec.source == Source::kPacked ? picture.packed_bytes - picture.packed_head : picture.scan_bytes;
  const double bytes_a_bit = static_cast<double>(stored) / static_cast<double>(picture.bits());
  Plan plan{picture, crop, spec, spec.recipe != Recipe::kNothing, bytes_a_bit, {}, {}, {}, {}};
  plan.columns = mcu_range(crop.left, crop.width, picture.h * kBlock, picture.columns);
  plan.rows = mcu_range(crop.top, crop.height, picture.v * kBlock, picture.rows);
  plan.luma_groups = in_groups(plan.columns, kGroup / picture.h, picture.columns);
  plan.chroma_groups = in_groups(plan.columns, kGroup, picture.columns);
  return plan;
}

// What a scan's MCU costs.
void count_scan(const Plan& plan, const McuSymbols& mcu, McuWork& work) {
  work.symbols = mcu.symbols;
  work.bytes = static_cast<float>(mcu.bits * plan.bytes_a_bit);
  work.blocks = static_cast<std::uint8_t>(plan.picture.blocks_in_mcu);
}

// What a packed image's MCU costs: only groups that the crop meets are read.
void count_packed(const Plan& plan, const McuSymbols& mcu, int column, McuWork& work) {
  const int chroma_blocks = plan.picture.blocks_in_mcu > 1 ? 2 : 0;
  const bool luma = plan.luma_groups.has(column), chroma = plan.chroma_groups.has(column) && chroma_blocks > 0;
  const int values = (luma ? mcu.luma_values : 0) + (chroma ? mcu.chroma_values : 0);
  const int blocks = (luma ? plan.picture.blocks_in_mcu - chroma_blocks : 0) + (chroma ? chroma_blocks : 0);
  work.symbols = static_cast<std::uint16_t>(values);
  work.blocks = static_cast<std::uint8_t>(blocks);
  work.bytes = static_cast<float>(mcu.bits * plan.bytes_a_bit * blocks / plan.picture.blocks_in_mcu);
}

void add_line(const Plan& plan, int row, std::int64_t& made, Job& job) {
  const int side = plan.picture.v * kBlock, top = row * side;
  const int rows = overlap(top, top + side, plan.crop.top, plan.crop.height);
  if (!plan.makes_tensor) {
    job.lines.push_back({0, 0, (plan.columns.end - plan.columns.begin) * plan.picture.blocks_in_mcu * kBlock * kBlock});
    return;
  }
  const bool is_last = row + 1 == plan.rows.end;
  const int seen = std::clamp(top + side - plan.crop.top, 0, plan.crop.height);
  const std::int64_t done = is_last ? kSide : std::int64_t{kSide} * seen / plan.crop.height;
  LineWork line;
  line.columns = static_cast<float>(rows) * static_cast<float>(std::max(plan.crop.width, kSide));
  line.rows = static_cast<float>(std::max<std::int64_t>(rows, done - made)) * kSide;
  line.pixels = static_cast<std::int32_t>((done - made) * kSide);
  made = done;
  job.lines.push_back(line);
}

void add_mcu(const Plan& plan, int row, int column, Job& job) {
  const Picture& picture = plan.picture;
  const McuSymbols& mcu = picture.mcus[static_cast<std::size_t>(row) * picture.columns + column];
  McuWork work;
  if (plan.spec.source == Source::kPacked)
    count_packed(plan, mcu, column, work);
  else
    count_scan(plan, mcu, work);
  if (plan.rows.has(row) && plan.columns.has(column)) {
    const int width = picture.h * kBlock, height = picture.v * kBlock;
    work.idct_blocks = static_cast<std::uint8_t>(picture.blocks_in_mcu);
    work.pixels =
        static_cast<std::uint16_t>(overlap(column * width, (column + 1) * width, plan.crop.left, plan.crop.width) *
                                   overlap(row * height, (row + 1) * height, plan.crop.top, plan.crop.height));
    work.begins_line = column == plan.columns.begin;
    work.ends_line = column + 1 == plan.columns.end;
    work.ends_crop = work.ends_line && row + 1 == plan.rows.end;
    work.line = static_cast<std::uint16_t>(row - plan.rows.begin);
  }
  job.symbols += work.symbols;
  job.blocks += work.blocks;
  job.idct_blocks += work.idct_blocks;
  job.mcus.push_back(work);
}

// As torchvision's: ten tries, then the largest crop of an allowed shape, in the middle.
Crop random_crop(int width, int height, std::mt19937_64& random) {
  const auto unit = [&random] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  const double least = std::log(3.0 / 4), most = std::log(4.0 / 3);
  for (int i = 0; i < 10; ++i) {
    const double area = (0.08 + 0.92 * unit()) * width * height, shape = std::exp(least + (most - least) * unit());
    const int w = static_cast<int>(std::lround(std::sqrt(area * shape)));
    const int h = static_cast<int>(std::lround(std::sqrt(area / shape)));
    if (w < 1 || h < 1 || w > width || h > height) continue;
    const int left = static_cast<int>(unit() * (width - w + 1)), top = static_cast<int>(unit() * (height - h + 1));
    return {left, top, w, h};
  }
  const double shape = std::clamp(static_cast<double>(width) / height, 3.0 / 4, 4.0 / 3);
  const int w = std::min(width, static_cast<int>(std::lround(height * shape)));
  const int h = std::min(height, static_cast<int>(std::lround(width / shape)));
  return {(width - w) / 2, (height - h) / 2, w, h};
}

}  // namespace

Crop crop_of(const Picture& picture, Recipe recipe, std::uint64_t seed, std::uint64_t draw) {
  const int width = picture.width, height = picture.height;
  if (recipe == Recipe::kTrain) {
    std::mt19937_64 random(seed * 0x9E3779B97F4A7C15 + draw);
    return random_crop(width, height, random);
  }
  if (recipe == Recipe::kCentre) {
    const int side = std::max(1, std::min(width, height) * kSide / 256);
    return {(width - side) / 2, (height - side) / 2, side, side};
  }
  return {0, 0, width, height};
}

Job job_of(const Picture& picture, const Crop& crop, const WorkSpec& spec) {
  const Plan plan = plan_of(picture, crop, spec);
  const bool packed = spec.source == Source::kPacked;
  Job job;
  job.source_bytes = packed ? picture.packed_bytes : picture.scan_bytes;
  job.command_bytes = kBatchShare + static_cast<std::int64_t>(sizeof(Descriptor));
  if (!packed) job.command_bytes += static_cast<std::int64_t>(sizeof(JpegTables));
  if (plan.makes_tensor) job.command_bytes += axis_bytes(crop.width) + axis_bytes(crop.height);
  job.table_symbols = picture.table_symbols;
  const Range rows = packed ? plan.rows : Range{0, spec.whole_scan ? picture.rows : plan.rows.end};
  std::int64_t made = 0;
  for (int row = rows.begin; row < rows.end; ++row) {
    if (plan.rows.has(row)) add_line(plan, row, made, job);
    for (int column = 0; column < picture.columns; ++column) {
      if (packed && !plan.luma_groups.has(column) && !plan.chroma_groups.has(column)) continue;
      add_mcu(plan, row, column, job);
    }
  }
  for (const LineWork& line : job.lines) job.pixels += line.pixels;
  return job;
}

std::vector<Job> jobs_of(std::span<const Picture> pictures, const WorkSpec& spec, std::size_t count) {
  std::vector<Job> jobs;
  jobs.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const Picture& picture = pictures[i % pictures.size()];
    jobs.push_back(job_of(picture, crop_of(picture, spec.recipe, spec.seed, i), spec));
  }
  return jobs;
}

}  // namespace millrace::hls::model
