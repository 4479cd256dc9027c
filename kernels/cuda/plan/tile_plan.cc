#include "kernels/cuda/plan/tile_plan.h"

#include <algorithm>
#include <span>

#include "kernels/cuda/reconstruct/reconstruct.h"

namespace millrace::kernels::cuda {
namespace {

// A part of the tensor's rows whose weights take no more leaves room for the rest.
constexpr int kRowWeightBytes = 8 * 1024;
// Bands of fewer source rows would mostly decode what their neighbours decode, too.
constexpr int kLeastRowsInBand = 64;

// `count` in `parts` as equal as can be.
Span part_of(int count, int parts, int i) {
  const auto at = [&](int part) { return static_cast<int>(std::int64_t{count} * part / parts); };
  return {at(i), at(i + 1)};
}

Tile tile_of(std::uint32_t image, const Span& columns, const Span& rows) {
  const auto u16 = [](int value) { return static_cast<std::uint16_t>(value); };
  return {image, u16(columns.begin), u16(rows.begin), u16(columns.count()), u16(rows.count())};
}

int least_bands(const Shape& whole, int wanted, int tiles_across) {
  const int height = whole.tile.height;
  const int in_memory = std::max(1, kRowWeightBytes / (4 * (whole.down.most_taps() + 2)));
  const int for_work = std::min(divided_up(wanted, tiles_across), std::max(1, whole.rows.count() / kLeastRowsInBand));
  return std::min(height, std::max(divided_up(height, in_memory), for_work));
}

// More and more quickly, so that what never fits is found out soon.
int next_count(int count, int most) {
  return count == most ? most + 1 : std::min(most, count + std::max(1, count / 4));
}

struct Cut {
  const TensorSpec& spec;
  const ImageJob& job;
  const std::int32_t* weights;
  std::uint32_t index;
  StoredSides sides = stored_sides(job);

  Shape shape(const Tile& tile) const { return shape_of(spec, job, weights, tile); }

  bool append(int across, int bands, std::vector<Tile>& tiles) const {
    const std::size_t before = tiles.size();
    for (int band = 0; band < bands; ++band) {
      for (int i = 0; i < across; ++i) {
        const Tile tile = tile_of(index, part_of(sides.columns, across, i), part_of(sides.rows, bands, band));
        if (shape(tile).bytes > kTileMemory) {
          tiles.resize(before);
          return false;
        }
        tiles.push_back(tile);
      }
    }
    return true;
  }
};

// Whether tiles, `across` in a band, leave out MCUs between them, which `nearest` may: blocks there go unseen, though
// the CPU, which decodes the box around all, may find them out of the ordinary.
bool leaves_gaps(const Cut& cut, std::span<const Tile> tiles, std::size_t across) {
  const auto apart = [](const Span& a, const Span& b) { return a.begin > b.end || b.begin > a.end; };  // turned or not
  for (std::size_t i = 1; i < tiles.size(); ++i) {
    const bool first = i % across == 0;
    const Shape before = cut.shape(tiles[first ? i - across : i - 1]), shape = cut.shape(tiles[i]);
    if (first ? apart(before.mcu_rows, shape.mcu_rows) : apart(before.mcu_columns, shape.mcu_columns)) return true;
  }
  return false;
}

bool is_sampled_here(const ImageJob& job) {
  const int h = job.component[0].h, v = job.component[0].v;
  const auto is_factor = [](int factor) { return factor == 1 || factor == 2 || factor == 4; };
  const bool grey = job.components == 1 && h == 1 && v == 1 && job.blocks_in_mcu == 1;
  bool colour = job.components == 3 && is_factor(h) && is_factor(v) && h * v <= 4 && job.blocks_in_mcu == h * v + 2;
  for (int i = 1; i < job.components && colour; ++i) colour = job.component[i].h == 1 && job.component[i].v == 1;
  return grey || colour;
}

}  // namespace

Tile whole_tile(const ImageJob& job, std::uint32_t index) {
  const StoredSides sides = stored_sides(job);
  return tile_of(index, {0, sides.columns}, {0, sides.rows});
}

McuBox needed_mcus(const TensorSpec& spec, const ImageJob& job, const std::int32_t* weights) {
  const Shape shape = shape_of(spec, job, weights, whole_tile(job, 0));
  return {shape.mcu_rows, shape.mcu_columns};
}

std::string_view cut_tiles(const TensorSpec& spec, const ImageJob& job, const std::int32_t* weights,
                           std::uint32_t index, int wanted, std::vector<Tile>& tiles) {
  const int frames = has_patches(spec) ? spec.patches.temporal : 1;
  if (std::int64_t{job.tensor_width} * job.tensor_height * channels_of(spec) * spec.element_bytes > INT32_MAX / frames)
    return "the tensor has more than 2 GiB";
  if (!is_sampled_here(job)) return "the kernels do not have this chroma sampling";
  const Cut cut{spec, job, weights, index};
  const Shape whole = cut.shape(whole_tile(job, index));
  const auto lacks_table = [&](const Side& side) {
    return side.table == nullptr && side.in != side.out && !is_computed(job.filter);
  };
  if (lacks_table(whole.across) || lacks_table(whole.down)) return "this filter needs weight tables";
  const std::size_t first = tiles.size();
  const int parts = job.filter == Filter::kNearest ? 1 : wanted;  // which has one tap, and may leave_gaps()
  const auto verdict = [&](int across) -> std::string_view {
    const bool unseen = job.filter == Filter::kNearest &&
                        leaves_gaps(cut, std::span(tiles).subspan(first), static_cast<std::size_t>(across));
    if (unseen) tiles.resize(first);
    return unseen ? "the crop is so much larger than the tensor that blocks between its tiles would not be seen" : "";
  };
  for (int across = 1; across <= cut.sides.columns; across = next_count(across, cut.sides.columns)) {
    if (cut.append(across, least_bands(whole, parts, across), tiles)) return verdict(across);
  }
  for (int bands = 1; bands <= cut.sides.rows; bands = next_count(bands, cut.sides.rows)) {
    if (cut.append(cut.sides.columns, bands, tiles)) return verdict(cut.sides.columns);
  }
  return "the crop is too much larger than the tensor for a multiprocessor's shared memory";
}

}  // namespace millrace::kernels::cuda
