#include "tests/unit/kernels/packed/packed_rig.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/jpeg/decoder.h"
#include "kernels/jpeg/ordinary.h"
#include "kernels/packed/layout.h"
#include "tests/support/jpeg/block_collector.h"
#include "tests/support/skip.h"

namespace millrace::kernels::packed {
namespace {

using jpeg::kCoefficients;

// A number of up to `bits` bits beside its sign, small ones as often as large ones.
int draw_magnitude(std::mt19937& random, int bits) {
  const auto width = static_cast<int>(random() % static_cast<unsigned>(bits + 1));
  return static_cast<int>(random() % (1U << width));
}

int signed_at_random(std::mt19937& random, int magnitude) {
  return random() % 2 == 0 ? magnitude : -magnitude;
}

void fill_block(std::int16_t* block, const std::array<std::uint16_t, 64>& quant, const Draw& draw,
                std::mt19937& random) {
  int left[jpeg::kBlock];
  std::fill(std::begin(left), std::end(left), jpeg::kMostInColumn);
  std::fill_n(block, kCoefficients, std::int16_t{0});
  for (std::size_t i = 0; i < kCoefficients; ++i) {
    if (i > 0 && static_cast<int>(random() % 1000) >= draw.density) continue;
    const std::size_t at = jpeg::kNatural[i];
    const int bits = i == 0 ? draw.level_bits : draw.bits;
    const int magnitude = std::min(draw_magnitude(random, bits), left[at % 8] / quant[at]);
    left[at % 8] -= magnitude * quant[at];
    block[i] = static_cast<std::int16_t>(signed_at_random(random, magnitude));
  }
}

// From differences to levels.
void add_up(Picture& picture) {
  const Grid grid = grid_of(picture.header);
  const int luma = grid.blocks_in_mcu() - (grid.components == 1 ? 0 : 2);
  int levels[3] = {};
  for (std::size_t i = 0; i < static_cast<std::size_t>(grid.blocks()); ++i) {
    const int at = static_cast<int>(i % static_cast<std::size_t>(grid.blocks_in_mcu()));
    const int component = at < luma ? 0 : 1 + at - luma;
    levels[component] += picture.block(i)[0];
    picture.block(i)[0] = static_cast<std::int16_t>(levels[component]);
  }
}

}  // namespace

jpeg::Header make_header(Size size, int components, int h, int v, std::uint16_t quant) {
  jpeg::Header header;
  header.size = size;
  header.components = components;
  for (std::size_t i = 0; i < 3; ++i) {
    header.component[i].id = static_cast<std::uint8_t>(i + 1);
    header.component[i].quant = i == 0 ? 2 : 1;
  }
  header.component[0].h = static_cast<std::uint8_t>(h);
  header.component[0].v = static_cast<std::uint8_t>(v);
  header.quant[2].emplace().fill(quant);
  header.quant[1] = header.quant[2];
  ++header.quant[1]->back();
  return header;
}

Picture make_picture(const jpeg::Header& header) {
  return {header, std::vector<std::int16_t>(static_cast<std::size_t>(grid_of(header).blocks()) * kCoefficients)};
}

void fill(Picture& picture, const Draw& draw, std::mt19937& random) {
  const auto& quant = *picture.header.quant[1];  // the larger one
  for (std::size_t i = 0; i < picture.blocks.size() / kCoefficients; ++i)
    fill_block(picture.block(i), quant, draw, random);
}

Picture read_picture(std::span<const std::byte> file) {
  static jpeg::Decoder decoder;
  const auto header = jpeg::read_header({reinterpret_cast<const std::uint8_t*>(file.data()), file.size()});
  if (!header) return {};
  const std::int64_t blocks = grid_of(*header).blocks();
  BlockCollector collector;
  if (decoder.decode_blocks(*header, blocks, blocks, collector) != jpeg::Outcome::kDecoded) return {};
  Picture picture = make_picture(*header);
  for (std::size_t i = 0; i < static_cast<std::size_t>(blocks); ++i)
    std::copy(collector.all[i].begin(), collector.all[i].end(), picture.block(i));
  add_up(picture);
  return picture;
}

std::vector<Target> every_target() {
  std::vector<Target> targets;
  for (const Target target : kernels::kAllTargets) {
    if (is_available(target))
      targets.push_back(target);
    else
      skip_loudly("instructions: this processor lacks " + std::string(name_of(target)));
  }
  return targets;
}

Bytes pack(Encoder& encoder, const Picture& picture) {
  Bytes bytes;
  const auto blocks = static_cast<std::int64_t>(picture.blocks.size() / kCoefficients);
  if (!encoder.begin(picture.header) || !encoder.take(picture.blocks.data(), blocks) || !encoder.finish(bytes))
    return {};
  return bytes;
}

Placed::Placed(std::span<const std::uint8_t> bytes, At at) : memory_(bytes.size() + kPadding) {
  const std::size_t all = bytes.size() + kPadding;
  const std::span<std::byte> room = at == At::kEnd ? memory_.last(all) : memory_.first(all);
  bytes_ = {reinterpret_cast<std::uint8_t*>(room.data()), bytes.size()};
  std::copy(bytes.begin(), bytes.end(), bytes_.begin());
  std::memset(room.data() + bytes.size(), 0xA5, kPadding);
}

std::vector<std::int16_t> unpack_all(const PackedImage& image, const Unpacker& unpacker) {
  const Grid& grid = image.grid();
  std::vector<std::int16_t> blocks(static_cast<std::size_t>(grid.blocks()) * kCoefficients);
  alignas(64) std::int16_t unpacked[kGroupBlocks * kCoefficients];
  std::size_t group = 0;
  for (int line = 0; line < grid.rows; ++line) {
    int first = 0;
    for (int component = 0; component < grid.components; ++component) {
      const int h = component == 0 ? grid.h : 1;
      for (int row = 0; row < grid.down(component); ++row, first += h) {
        for (int column = 0; column < grid.across(component); ++column) {
          if (column % kGroupBlocks == 0) {
            const Group packed = image.group(group++);
            unpacker.unpack(packed, 0, packed.blocks, unpacked);
          }
          const std::size_t mcu = static_cast<std::size_t>(line) * static_cast<std::size_t>(grid.columns) +
                                  static_cast<std::size_t>(column / h);
          const std::size_t index =
              mcu * static_cast<std::size_t>(grid.blocks_in_mcu()) + static_cast<std::size_t>(first + column % h);
          std::copy_n(unpacked + std::ptrdiff_t{column % kGroupBlocks} * kCoefficients, kCoefficients,
                      blocks.data() + index * kCoefficients);
        }
      }
    }
  }
  return blocks;
}

void sign(std::span<std::uint8_t> bytes) {
  const std::uint64_t sum = layout::checksum(bytes);
  std::memcpy(bytes.data() + layout::kChecksum, &sum, sizeof sum);
}

}  // namespace millrace::kernels::packed
