#include "kernels/packed/encoder.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "kernels/jpeg/ordinary.h"
#include "kernels/packed/layout.h"

namespace millrace::kernels::packed {
namespace {

constexpr std::size_t kBlockBytes = jpeg::kCoefficients * sizeof(std::int16_t);

template <typename Number>
void store(std::uint8_t* at, Number number) {
  std::memcpy(at, &number, sizeof number);
}

bool is_packable(const jpeg::Header& header) {
  if (!layout::is_our_kind(header)) return false;
  for (std::size_t i = 0; i < static_cast<std::size_t>(header.components); ++i) {
    const std::size_t table = header.component[i].quant;
    if (table >= jpeg::kMostTables || !header.quant[table]) return false;
    const auto& values = *header.quant[table];
    if (std::find(values.begin(), values.end(), 0) != values.end()) return false;
  }
  return true;
}

Limits limits_of(const std::array<std::uint16_t, jpeg::kCoefficients>& quant) {
  Limits limits;
  limits.quant = quant;
  for (std::size_t i = 0; i < jpeg::kCoefficients; ++i) {
    const std::size_t natural = jpeg::kNatural[i];
    limits.harmless[i] = static_cast<std::uint16_t>(jpeg::harmless_magnitude(natural) / quant[natural]);
  }
  return limits;
}

}  // namespace

bool Encoder::Room::grow(std::size_t least, std::size_t kept) {
  if (least <= size) return true;
  const std::size_t larger = std::max(least, 2 * size);
  std::unique_ptr<std::uint8_t[]> grown(new (std::nothrow) std::uint8_t[larger]);
  if (!grown) return false;
  if (kept > 0) std::memcpy(grown.get(), bytes.get(), kept);
  bytes = std::move(grown);
  size = larger;
  return true;
}

Encoder::Encoder(Target target) : pack_group_(group_packer(target)), chooser_(target) {}

bool Encoder::forget() {
  is_begun_ = false;
  return false;
}

bool Encoder::begin(const jpeg::Header& header) {
  if (!is_packable(header)) return forget();
  header_ = header;
  header_.scan = {};
  grid_ = grid_of(header);
  table_count_ = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(grid_.components); ++i) {
    const auto& quant = *header_.quant[header_.component[i].quant];
    limits_[i] = limits_of(quant);
    const auto is_same = [&](std::uint8_t other) { return limits_[other].quant == quant; };
    const auto end = tables_.begin() + table_count_;
    const auto found = std::find_if(tables_.begin(), end, is_same);
    table_of_[i] = static_cast<std::uint8_t>(found - tables_.begin());
    if (found == end) tables_[table_count_++] = static_cast<std::uint8_t>(i);
  }
  end_ = layout::groups_start(table_count_, grid_.groups());
  if (!room_.grow(end_, 0)) return forget();
  group_ = 0;
  line_ = 0;
  held_ = 0;
  is_begun_ = true;
  return true;
}

bool Encoder::take(const std::int16_t* blocks, std::int64_t count) {
  if (!is_begun_) return false;
  const std::int64_t in_row = grid_.blocks_in_mcu_row();
  while (count > 0) {
    if (line_ == grid_.rows) return forget();
    const std::int64_t step = std::min(count, in_row - held_);
    if (step == in_row) {
      if (!pack_mcu_row(blocks)) return forget();
    } else {
      if (!row_.grow(static_cast<std::size_t>(in_row) * kBlockBytes, static_cast<std::size_t>(held_) * kBlockBytes))
        return forget();
      std::memcpy(row_.bytes.get() + static_cast<std::size_t>(held_) * kBlockBytes, blocks,
                  static_cast<std::size_t>(step) * kBlockBytes);
      held_ += step;
      if (held_ == in_row) {
        if (!pack_mcu_row(reinterpret_cast<const std::int16_t*>(row_.bytes.get()))) return forget();
        held_ = 0;
      }
    }
    blocks += step * jpeg::kCoefficients;
    count -= step;
  }
  return true;
}

bool Encoder::pack_mcu_row(const std::int16_t* blocks) {
  const auto groups = static_cast<std::size_t>(grid_.groups_in_mcu_row());
  if (!room_.grow(end_ + groups * kPackingRoom, end_)) return false;
  int first_in_mcu = 0;
  for (int component = 0; component < grid_.components; ++component) {
    if (!pack_component(blocks, component, first_in_mcu)) return false;
    first_in_mcu += component == 0 ? grid_.h * grid_.v : 1;
  }
  ++line_;
  return true;
}

// `first_in_mcu`: which of an MCU's blocks is the component's first.
bool Encoder::pack_component(const std::int16_t* blocks, int component, int first_in_mcu) {
  const int in_mcu = grid_.blocks_in_mcu(), h = component == 0 ? grid_.h : 1, across = grid_.across(component);
  const std::int16_t* list[kGroupBlocks];
  std::uint8_t* sizes = room_.bytes.get() + layout::kHeadBytes + layout::kTableBytes * table_count_;
  for (int row = 0; row < grid_.down(component); ++row) {
    const std::int16_t* const first = blocks + std::ptrdiff_t{first_in_mcu + row * h} * jpeg::kCoefficients;
    for (int column = 0; column < across; column += kGroupBlocks) {
      const int count = std::min(across - column, kGroupBlocks);
      for (int i = 0; i < count; ++i) {
        const int x = column + i, mcu = h == 2 ? x / 2 : x, within = h == 2 ? x % 2 : 0;
        list[i] = first + (std::ptrdiff_t{mcu} * in_mcu + within) * jpeg::kCoefficients;
      }
      const Limits& limits = limits_[static_cast<std::size_t>(component)];
      const std::size_t size = pack_group_({list, count}, limits, chooser_, room_.bytes.get() + end_);
      if (size == 0) return false;
      store(sizes + layout::kSizeBytes * group_++, static_cast<std::uint16_t>(size));
      end_ += size;
    }
  }
  return true;
}

void Encoder::put_head() {
  using namespace layout;
  std::uint8_t* const head = room_.bytes.get();
  std::memset(head, 0, kHeadBytes);
  store(head, kMagic);
  head[4] = kVersion;
  head[kComponents] = static_cast<std::uint8_t>(grid_.components);
  head[kH] = static_cast<std::uint8_t>(grid_.h);
  head[kV] = static_cast<std::uint8_t>(grid_.v);
  store(head + kWidth, static_cast<std::uint16_t>(header_.size.width));
  store(head + kHeight, static_cast<std::uint16_t>(header_.size.height));
  for (int i = 0; i < grid_.components; ++i) head[kTableOf + i] = table_of_[i];
  head[kTables] = table_count_;
  store(head + kGroups, static_cast<std::uint32_t>(grid_.groups()));
  store(head + kBytes, std::uint64_t{end_});
  for (std::size_t i = 0; i < table_count_; ++i)
    std::memcpy(head + kHeadBytes + i * kTableBytes, limits_[tables_[i]].quant.data(), kTableBytes);
  const std::size_t sizes_end = kHeadBytes + kTableBytes * table_count_ + kSizeBytes * grid_.groups();
  const std::size_t start = groups_start(table_count_, grid_.groups());
  std::memset(head + sizes_end, 0, start - sizes_end);
  store(head + kChecksum, checksum({head, end_}));
}

bool Encoder::finish(std::vector<std::uint8_t>& out) {
  if (!is_begun_ || line_ != grid_.rows) return forget();
  put_head();
  out.assign(room_.bytes.get(), room_.bytes.get() + end_);
  forget();
  return true;
}

void Encoder::trim(std::size_t bytes) {
  for (Room* const room : {&room_, &row_}) {
    if (room->size > bytes) *room = {};
  }
  forget();
}

}  // namespace millrace::kernels::packed
