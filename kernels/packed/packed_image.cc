#include "kernels/packed/packed_image.h"

#include <cstring>

#include "kernels/base/hash.h"
#include "kernels/packed/layout.h"

namespace millrace::kernels::packed {
namespace {

using Bytes = std::span<const std::uint8_t>;
constexpr int kMostPixels = 65500;  // a side, for libjpeg

template <typename Number>
Number load(Bytes bytes, std::size_t at) {
  Number number;
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

int divide_up(int value, int by) {
  return (value + by - 1) / by;
}

}  // namespace

int Grid::groups_in_mcu_row() const {
  int groups = 0;
  for (int component = 0; component < components; ++component) groups += down(component) * groups_across(component);
  return groups;
}

std::size_t Grid::group_of(int line, int component, int row, int column) const {
  int before = row * groups_across(component) + column / kGroupBlocks;
  for (int other = 0; other < component; ++other) before += down(other) * groups_across(other);
  return static_cast<std::size_t>(line) * static_cast<std::size_t>(groups_in_mcu_row()) +
         static_cast<std::size_t>(before);
}

Grid grid_of(const jpeg::Header& header) {
  const int h = header.component[0].h, v = header.component[0].v;
  return {.components = header.components,
          .h = h,
          .v = v,
          .columns = divide_up(header.size.width, jpeg::kBlock * h),
          .rows = divide_up(header.size.height, jpeg::kBlock * v)};
}

std::uint64_t layout::checksum(Bytes bytes) {
  return xxh3_64(bytes.subspan(kHeadBytes), xxh3_64(bytes.first(kChecksum), 0));
}

bool layout::is_our_kind(const jpeg::Header& header) {
  const auto [width, height] = header.size;
  if (width < 1 || height < 1 || width > kMostPixels || height > kMostPixels) return false;
  const int h = header.component[0].h, v = header.component[0].v;
  if (header.components == 1) return h == 1 && v == 1;
  if (header.components != 3 || h < 1 || h > 2 || v < 1 || v > 2) return false;
  for (const std::size_t i : {1, 2}) {
    if (header.component[i].h != 1 || header.component[i].v != 1) return false;
  }
  return h == 1 || width > 4;  // as read_header() of kernels/jpeg
}

bool PackedImage::read(Bytes bytes_untrusted, Check check) {
  using namespace layout;
  const Bytes bytes = bytes_untrusted;
  if (bytes.size() < kHeadBytes || !read_head(bytes)) return false;
  const std::size_t tables = bytes[kTables], groups = grid_.groups();
  if (load<std::uint32_t>(bytes, kGroups) != groups || bytes.size() < groups_start(tables, groups)) return false;
  if (!read_tables(bytes, tables) || !read_sizes(bytes, tables)) return false;
  return check == Check::kShape || load<std::uint64_t>(bytes, kChecksum) == checksum(bytes);
}

bool PackedImage::read_head(Bytes bytes) {
  using namespace layout;
  if (load<std::uint32_t>(bytes, 0) != kMagic || bytes[4] != kVersion) return false;
  if (load<std::uint64_t>(bytes, kBytes) != bytes.size() || load<std::uint32_t>(bytes, kReserved) != 0) return false;
  header_ = {};
  header_.size = {load<std::uint16_t>(bytes, kWidth), load<std::uint16_t>(bytes, kHeight)};
  header_.components = bytes[kComponents];
  header_.component[0].h = bytes[kH];
  header_.component[0].v = bytes[kV];
  if (!is_our_kind(header_)) return false;
  for (std::uint8_t i = 0; i < header_.components; ++i) {
    header_.component[i].id = static_cast<std::uint8_t>(i + 1);
    header_.component[i].quant = bytes[kTableOf + i];
    if (header_.component[i].quant >= bytes[kTables]) return false;
  }
  grid_ = grid_of(header_);
  return bytes[kTables] <= header_.components;
}

bool PackedImage::read_tables(Bytes bytes, std::size_t tables) {
  using namespace layout;
  for (std::size_t i = 0; i < tables; ++i) {
    auto& table = header_.quant[i].emplace();
    std::memcpy(table.data(), bytes.data() + kHeadBytes + i * kTableBytes, kTableBytes);
    if (std::find(table.begin(), table.end(), 0) != table.end()) return false;
  }
  return true;
}

// Groups follow one another without a gap, so none overlaps another one, and the last one ends where the bytes end.
bool PackedImage::read_sizes(Bytes bytes, std::size_t tables) {
  using namespace layout;
  const std::size_t groups = grid_.groups();
  const std::uint8_t* size_at = bytes.data() + kHeadBytes + kTableBytes * tables;
  std::uint64_t at = groups_start(tables, groups);
  offsets_.resize(groups + 1);
  for (std::size_t i = 0; i < groups; ++i, size_at += kSizeBytes) {
    std::uint16_t size;
    std::memcpy(&size, size_at, sizeof size);
    offsets_[i] = at;
    at += size;
  }
  offsets_[groups] = at;
  if (at != bytes.size()) return false;

  blocks_.clear();
  for (int component = 0; component < grid_.components; ++component) {
    for (int row = 0; row < grid_.down(component); ++row) {
      for (int left = grid_.across(component); left > 0; left -= kGroupBlocks)
        blocks_.push_back(static_cast<std::uint8_t>(std::min(left, kGroupBlocks)));
    }
  }
  bytes_ = bytes.data();
  return true;
}

Group PackedImage::group(std::size_t index) const {
  return {bytes_ + offsets_[index], bytes_ + offsets_[index + 1], blocks_[index % blocks_.size()]};
}

}  // namespace millrace::kernels::packed
