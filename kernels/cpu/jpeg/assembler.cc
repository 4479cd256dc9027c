#include "kernels/cpu/jpeg/assembler.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/jpeg/dct/fast_dct.h"
#include "kernels/cpu/jpeg/dct/scaled_dct.h"

namespace millrace::kernels::jpeg {
namespace {

constexpr int kMargin = 2;  // pixels: chroma smoothing looks one chroma sample further

int divide_up(int value, int by) {
  return (value + by - 1) / by;
}

// A level that leaves 16 bits.
bool is_beyond(int level) {
  return static_cast<unsigned>(level + INT16_MAX) > 2U * INT16_MAX;
}

// Brings a group, of which there are some 500 bytes, while the one before it is unpacked.
void prefetch(const packed::Group& group) {
  constexpr std::size_t kBytes = 512, kLine = 64;
  static_assert(kBytes <= packed::kPadding);
  for (std::size_t at = 0; at < kBytes; at += kLine) __builtin_prefetch(group.begin + at);
}

std::ptrdiff_t round_up(std::ptrdiff_t value) {
  return (value + 63) / 64 * 64;
}

}  // namespace

bool Assembler::begin(const Header& header, const Box& box, PixelConsumer& pixels, const Deadline& deadline) {
  pixels_ = &pixels;
  consumer_ = nullptr;
  lines_held_ = 2;
  sides_ = {kBlock, kBlock, kBlock};
  return begin(header, box, deadline);
}

bool Assembler::begin(const Header& header, const PlaneRequest& request, const Deadline& deadline) {
  consumer_ = &request.consumer;
  sides_ = request.sides;
  lines_held_ = 4;
  const int side = *std::min_element(sides_.begin(), sides_.end());
  while ((lines_held_ - 3) * side < request.rows_held) lines_held_ *= 2;
  return begin(header, request.box, deadline);
}

bool Assembler::begin(const Header& header, const Box& box, const Deadline& deadline) {
  size_ = header.size;
  components_ = header.components;
  h_ = header.component[0].h;
  v_ = header.component[0].v;
  mcus_ = {divide_up(size_.width, kBlock * h_), divide_up(size_.height, kBlock * v_)};
  box_ = box;
  deadline_ = deadline;
  for (int i = 0; i < components_; ++i) {
    const auto& quant = *header.quant[header.component[static_cast<std::size_t>(i)].quant];
    dequantisers_[i] = make_dequantiser(quant);
    if (consumer_ != nullptr) add_fast_factors(quant, dequantisers_[i]);
  }
  choose_range();
  if (!reserve_planes()) return false;
  place_blocks();
  predictors_ = {};
  note_levels(nullptr);
  at_ = column_ = line_ = job_count_ = 0;
  next_row_ = box_.top;
  late_ = false;
  begin_mcu_row();
  return true;
}

void Assembler::choose_range() {
  const int x = h_ == 2 ? kMargin : 0, y = v_ == 2 ? kMargin : 0;
  columns_ = {std::max(0, box_.left - x) / (kBlock * h_),
              divide_up(std::min(size_.width, box_.left + box_.width + x), kBlock * h_)};
  lines_ = {std::max(0, box_.top - y) / (kBlock * v_),
            divide_up(std::min(size_.height, box_.top + box_.height + y), kBlock * v_)};
}

bool Assembler::reserve_planes() {
  const int mcus = columns_.end - columns_.begin;
  const auto stride_of = [&](int samples) { return round_up(std::ptrdiff_t{samples} * mcus) + 2 * kRowSlack; };
  std::ptrdiff_t total = 4 * stride_of(2 * kBlock) + 2 * kRowSlack;
  for (int i = 0; i < 3; ++i) {
    Plane& plane = planes_[i];
    const int across = i == 0 ? h_ : 1, down = i == 0 ? v_ : 1;
    plane.side = sides_[static_cast<std::size_t>(i)];
    plane.stride = stride_of(plane.side * across);
    plane.rows = lines_held_ * plane.side * down;
    plane.first = columns_.begin * plane.side * across;
    total += plane.stride * plane.rows;
  }
  std::uint8_t* at = memory_.reserve(static_cast<std::size_t>(total));
  if (at == nullptr) return false;
  at += kRowSlack;
  for (Plane& plane : planes_) {
    plane.samples = at;
    at += plane.stride * plane.rows;
  }
  for (std::uint8_t*& upsampled : upsampled_) {
    upsampled = at;
    at += stride_of(2 * kBlock);
  }
  sums_ = reinterpret_cast<std::int16_t*>(at);
  return true;
}

// T.81 A.2.3: component by component, row by row.
void Assembler::place_blocks() {
  blocks_in_mcu_ = 0;
  for (int component = 0; component < components_; ++component) {
    const Plane& plane = planes_[component];
    const int across = component == 0 ? h_ : 1, down = component == 0 ? v_ : 1;
    for (int i = 0; i < across * down; ++i) {
      Place& place = places_[blocks_in_mcu_++];
      place.component = component;
      place.side = plane.side;
      place.step = plane.side * across;
      place.offset = plane.side * (i / across * plane.stride + i % across);
      place.stride = plane.stride;
      place.dequantiser = &dequantisers_[component];
    }
  }
}

std::int64_t Assembler::blocks_needed() const {
  return (std::int64_t{lines_.end - 1} * mcus_.begin + columns_.end) * blocks_in_mcu_;
}

std::int64_t Assembler::blocks_of_image() const {
  return std::int64_t{mcus_.begin} * mcus_.end * blocks_in_mcu_;
}

void Assembler::begin_mcu_row() {
  for (int i = 0; i < blocks_in_mcu_; ++i) {
    places_[i].out = mcu_row(planes_[places_[i].component]) + places_[i].offset;
  }
}

// Where the samples of this MCU row begin.
std::uint8_t* Assembler::mcu_row(const Plane& plane) const {
  return plane.samples + (line_ & (lines_held_ - 1)) * (plane.rows / lines_held_) * plane.stride;
}

bool Assembler::take(std::int16_t* blocks, std::int64_t count) {
  while (count > 0) {
    const std::int64_t run = std::min(count, blocks_to_border());
    if (!(is_wanted() ? add_blocks(blocks, run) : skip_blocks(blocks, run))) return false;
    blocks += run * kCoefficients;
    count -= run;
    at_ += static_cast<int>(run);
    column_ += at_ / blocks_in_mcu_;
    at_ %= blocks_in_mcu_;
    const bool last = line_ + 1 == lines_.end && column_ == columns_.end && at_ == 0;
    if ((last || column_ == mcus_.begin) && !end_mcu_row()) return false;
  }
  return flush();
}

bool Assembler::is_wanted() const {
  return line_ >= lines_.begin && column_ >= columns_.begin && column_ < columns_.end;
}

// How many blocks of this MCU row come before the next MCU that is wanted where this one is not, or the other way
// round.
std::int64_t Assembler::blocks_to_border() const {
  int end = mcus_.begin;
  if (line_ >= lines_.begin && column_ < columns_.begin) end = columns_.begin;
  if (is_wanted()) end = columns_.end;
  return std::int64_t{end - column_} * blocks_in_mcu_ - at_;
}

// DC prediction alone.
bool Assembler::skip_blocks(std::int16_t* blocks, std::int64_t count) {
  int levels[3] = {predictors_[0], predictors_[1], predictors_[2]};
  std::int16_t* noted = level_;
  bool odd = false;
  int at = at_;
  for (std::int64_t i = 0; i < count; ++i, noted += level_step_) {
    const int level = levels[places_[at].component] += blocks[i * kCoefficients];
    odd |= is_beyond(level);
    *noted = static_cast<std::int16_t>(level);
    if (++at == blocks_in_mcu_) at = 0;
  }
  level_ = noted;
  std::copy(levels, levels + 3, predictors_.begin());
  std::memset(blocks, 0, static_cast<std::size_t>(count) * kBlockBytes);
  return !odd;
}

bool Assembler::add_blocks(std::int16_t* blocks, std::int64_t count) {
  int at = at_;
  for (std::int64_t i = 0; i < count; ++i, blocks += kCoefficients) {
    Place& place = places_[at];
    const int level = predictors_[static_cast<std::size_t>(place.component)] += blocks[0];
    if (is_beyond(level)) return false;
    *level_ = blocks[0] = static_cast<std::int16_t>(level);
    level_ += level_step_;
    if (!add_job(place, blocks)) return false;
    place.out += place.step;
    if (++at == blocks_in_mcu_) at = 0;
  }
  return true;
}

inline bool Assembler::add_job(const Place& place, std::int16_t* block) {
  BlockJob& job = jobs_[job_count_];  // filled in place: a copy would wait for its parts to be stored
  job.coefficients = block;
  job.dequantiser = place.dequantiser;
  job.out = place.out;
  job.stride = place.stride;
  if (place.side != kBlock) return transform_scaled(job, place.side);
  return ++job_count_ < kJobs || flush();
}

void Assembler::note_levels(std::int16_t* levels) {
  level_ = levels == nullptr ? &unnoted_ : levels;
  level_step_ = levels == nullptr ? 0 : 1;
}

// Rows left behind are complete as far as the box needs them.
bool Assembler::seek(int line, int column, const DcPredictors& predictors) {
  while (line_ < line && line_ >= lines_.begin) {
    if (!end_mcu_row()) return false;
  }
  if (line_ < line) {
    line_ = line;
    begin_mcu_row();
  }
  column_ = column;
  predictors_ = predictors;
  return true;
}

bool Assembler::take(const packed::PackedImage& image) {
  choose_pieces(image.grid());
  line_ = lines_.begin;
  while (line_ < lines_.end) {
    if (!add_packed_row(image) || !end_mcu_row()) return false;
  }
  return true;
}

// In the order in which their groups lie.
void Assembler::choose_pieces(const packed::Grid& grid) {
  pieces_.clear();
  std::size_t group = 0;
  for (int component = 0; component < components_; ++component) {
    const Plane& plane = planes_[component];
    const int across = component == 0 ? h_ : 1, begin = columns_.begin * across, end = columns_.end * across;
    for (int row = 0; row < grid.down(component); ++row) {
      for (int at = 0; at < grid.across(component); at += packed::kGroupBlocks, ++group) {
        const int first = std::max(at, begin), count = std::min(at + packed::kGroupBlocks, end) - first;
        if (count <= 0) continue;
        pieces_.push_back({.group = group,
                           .component = component,
                           .first = first - at,
                           .count = count,
                           .offset = plane.side * (row * plane.stride + first - begin)});
      }
    }
  }
}

bool Assembler::add_packed_row(const packed::PackedImage& image) {
  const Precision precision = consumer_ == nullptr ? Precision::kExact : Precision::kFast;
  const auto in_row = static_cast<std::size_t>(image.grid().groups_in_mcu_row());
  const std::size_t row = static_cast<std::size_t>(line_) * in_row;
  packed::Group group = image.group(row + pieces_.front().group);
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    const Piece& piece = pieces_[i];
    const Plane& plane = planes_[piece.component];
    const bool last = i + 1 == pieces_.size();
    const std::size_t next = last ? row + in_row + pieces_.front().group : row + pieces_[i + 1].group;
    const packed::Group next_group = last && line_ + 1 == lines_.end ? group : image.group(next);
    prefetch(next_group);
    const PackedRun run{.group = group,
                        .first = piece.first,
                        .count = piece.count,
                        .side = plane.side,
                        .dequantiser = &dequantisers_[piece.component],
                        .out = mcu_row(plane) + piece.offset,
                        .stride = plane.stride};
    if (!packed_dct_.transform(run, precision)) return false;
    group = next_group;
  }
  return true;
}

bool Assembler::flush() {
  const int count = job_count_;
  job_count_ = 0;
  if (count == 0) return true;
  return consumer_ == nullptr ? transform_.transform(jobs_, count) : transform_.transform_fast(jobs_, count);
}

bool Assembler::end_mcu_row() {
  if (!flush()) return false;
  late_ = deadline_.is_over();
  if (late_) return false;
  if (line_ >= lines_.begin) consumer_ == nullptr ? make_rows() : hand_over_planes();
  column_ = 0;
  ++line_;
  begin_mcu_row();
  return true;
}

// The rows of the box whose samples, and those that smoothing looks at, are there.
void Assembler::make_rows() {
  const int end = box_.top + box_.height;
  const int known = kBlock * v_ * (line_ + 1) - (v_ == 2 ? 1 : 0);
  const int ready = line_ + 1 == lines_.end ? end : std::min(end, known);
  for (; next_row_ < ready; ++next_row_) {
    make_row(next_row_);
    pixels_->take(next_row_ - box_.top);
  }
}

void Assembler::hand_over_planes() {
  SamplePlane planes[3];
  int ready[3];
  for (int i = 0; i < components_; ++i) {
    const Plane& plane = planes_[i];
    const int step = kBlock / plane.side * (i == 0 ? 1 : v_);  // pixels
    planes[i] = {plane.samples, plane.stride, plane.first, static_cast<unsigned>(plane.rows - 1)};
    ready[i] = std::min(plane.rows / lines_held_ * (line_ + 1), divide_up(size_.height, step));
  }
  if (line_ + 1 == lines_.end) next_row_ = box_.top + box_.height;
  consumer_->take(planes, ready);
}

void Assembler::make_row(int y) {
  std::uint8_t* const pixels = pixels_->place(y - box_.top);
  const std::uint8_t* const luma = planes_[0].row(y) + box_.left - columns_.begin * kBlock * h_;
  if (components_ == 1) {
    std::memcpy(pixels, luma, static_cast<std::size_t>(box_.width));
    return;
  }
  const std::uint8_t* const blue = full_chroma(planes_[1], y, upsampled_[0]);
  const std::uint8_t* const red = full_chroma(planes_[2], y, upsampled_[1]);
  rows_.to_rgb(luma, blue, red, box_.width, pixels);
}

// The chroma samples of the box's row `y`, in `row` where they are not in the plane.
const std::uint8_t* Assembler::full_chroma(const Plane& plane, int y, std::uint8_t* row) {
  const int first = box_.left / h_, count = divide_up(box_.left + box_.width, h_) - first;
  const int near = y / v_;
  const int far = std::clamp(y % 2 == 0 ? near - 1 : near + 1, 0, divide_up(size_.height, v_) - 1);
  const int skipped = first - columns_.begin * kBlock;
  std::uint8_t* const in = plane.row(near) + skipped;
  if (h_ == 1) {
    if (v_ == 1) return in;
    rows_.blend_only(in, plane.row(far) + skipped, count, 1 + y % 2, row);
    return row;
  }
  extend(plane.row(near));
  if (v_ == 1) {
    rows_.widen(in, count, row);
  } else {
    extend(plane.row(far));
    std::int16_t* const sums = sums_ + kRowSlack / 2;
    rows_.blend(in, plane.row(far) + skipped, count, sums);
    rows_.widen_sums(sums, count, row);
  }
  return row + box_.left % 2;
}

// Where the image ends, its outermost chroma samples stand for those beyond.
void Assembler::extend(std::uint8_t* row) const {
  const int first = columns_.begin * kBlock, end = columns_.end * kBlock, width = divide_up(size_.width, 2);
  if (first == 0) row[-1] = row[0];
  if (end >= width) row[width - first] = row[width - first - 1];
}

}  // namespace millrace::kernels::jpeg
