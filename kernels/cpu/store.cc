#include "kernels/cpu/store.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/convert.h"
#include "kernels/cpu/plane/plane_kernels.h"
#include "kernels/cpu/rows/row_kernels.h"
#include "kernels/cpu/store_kernels.h"
#include "kernels/cpu/workspace.h"

namespace millrace::kernels {
namespace {

// `count` pixels from the right end, for pictures that are flipped without being split.
template <int kChannels>
void mirror(const std::uint8_t* in, int count, std::uint8_t* out) {
  for (int x = 0; x < count; ++x)
    std::memcpy(out + x * kChannels, in + (count - 1 - x) * std::ptrdiff_t{kChannels}, kChannels);
}

// Three elements a pixel, each through its own table.
template <class Element>
void widen_pixels(const StoreTable& table, const std::uint8_t* in, int count, Element* out) {
  for (int x = 0; x < count; ++x, in += 3, out += 3) {
    for (int c = 0; c < 3; ++c) out[c] = static_cast<Element>(table.plane(c).values[in[c]]);
  }
}

}  // namespace

ImageStore::ImageStore(const StoreTable& table, std::span<std::byte> tensor, Size size, int source_channels, Flip flip,
                       Workspace& workspace)
    : table_(table),
      tensor_(tensor.data()),
      size_(size),
      source_channels_(source_channels),
      flip_(flip),
      workspace_(workspace),
      kernels_(store_kernels(workspace.target())) {}

void ImageStore::operator()(int y, const std::uint8_t* row) {
  if (table_.spec().patches) return store_patches(y, row);
  if (table_.channels() == 1) return store_grey_planes(y, row);
  if (table_.spec().layout == Layout::kNhwc) return store_pixels(y, row);
  source_channels_ == 1 ? store_grey_planes(y, row) : store_colour_planes(y, row);
}

void ImageStore::store_planes(int y, const std::uint8_t* const* rows) {
  flip_ = Flip::kNone;
  const bool as_pixels = !table_.spec().patches && table_.spec().layout == Layout::kNhwc;
  if (source_channels_ == 1) return (*this)(y, rows[0]);
  if (as_pixels || table_.channels() == 1) {
    std::uint8_t* const pixels = workspace_.pixel_row(3 * (row_bytes(size_.width) + 64));
    plane_kernels(workspace_.target()).to_pixels(rows, size_.width, pixels);
    return (*this)(y, pixels);
  }
  const std::uint8_t* planes[3];
  for (int c = 0; c < 3; ++c) planes[c] = rows[colour_of(table_.spec().channels, c)];
  if (table_.spec().patches)
    scatter_split(y, planes, reinterpret_cast<std::byte*>(workspace_.store_rows(4 * row_bytes(size_.width))));
  else
    store_split(y, planes);
}

// One row of every plane, from rows in the tensor's order.
void ImageStore::store_split(int y, const std::uint8_t* const planes[3]) {
  const std::size_t row_size = static_cast<std::size_t>(size_.width) * table_.element_bytes();
  std::byte* const out = tensor_ + y * row_size;
  for (int c = 0; c < 3; ++c) widen(table_.plane(c), planes[c], size_.width, out + c * row_size * size_.height);
}

void ImageStore::widen(const StorePlane& plane, const std::uint8_t* in, int count, std::byte* out) const {
  if (table_.element_bytes() == 1) std::memcpy(out, in, static_cast<std::size_t>(count));
  if (table_.element_bytes() == 2) kernels_.widen16(plane, in, count, reinterpret_cast<std::uint16_t*>(out));
  if (table_.element_bytes() == 4) kernels_.widen32(plane, in, count, reinterpret_cast<std::uint32_t*>(out));
}

// One row of every plane, from an RGB row.
void ImageStore::store_colour_planes(int y, const std::uint8_t* row) {
  const std::size_t pitch = row_bytes(size_.width);
  const std::size_t row_size = static_cast<std::size_t>(size_.width) * table_.element_bytes();
  const std::size_t plane_size = row_size * size_.height;
  std::byte* out = tensor_ + y * row_size;
  std::uint8_t* scratch = workspace_.store_rows(3 * pitch);
  const bool in_place = table_.element_bytes() == 1;
  std::uint8_t* planes[3];
  for (int c = 0; c < 3; ++c) {
    std::uint8_t* final_place = reinterpret_cast<std::uint8_t*>(out + c * plane_size);
    planes[colour_of(table_.spec().channels, c)] = in_place ? final_place : scratch + c * pitch;
  }
  kernels_.split(row, size_.width, flip_, planes);
  if (in_place) return;
  for (int c = 0; c < 3; ++c) widen(table_.plane(c), scratch + c * pitch, size_.width, out + c * plane_size);
}

// `row` in grey and flipped: itself, or in `scratch`, which has room for two rows.
const std::uint8_t* ImageStore::as_grey(const std::uint8_t* row, std::uint8_t* scratch) {
  if (source_channels_ == 3) {
    rgb_to_grey(row, size_.width, scratch);
    row = scratch;
  }
  if (flip_ == Flip::kNone) return row;
  std::uint8_t* const mirrored = scratch + row_bytes(size_.width);
  mirror<1>(row, size_.width, mirrored);
  return mirrored;
}

// One row of every plane, where all of them (or the only one) come from grey.
void ImageStore::store_grey_planes(int y, const std::uint8_t* row) {
  const std::size_t row_size = static_cast<std::size_t>(size_.width) * table_.element_bytes();
  std::byte* out = tensor_ + y * row_size;
  const std::uint8_t* grey = as_grey(row, workspace_.store_rows(2 * row_bytes(size_.width)));
  for (int c = 0; c < table_.channels(); ++c)
    widen(table_.plane(c), grey, size_.width, out + c * row_size * size_.height);
}

// `row` as three bytes a pixel in the tensor's order, flipped: itself, or in scratch.
const std::uint8_t* ImageStore::in_tensor_channels(const std::uint8_t* row) {
  const bool bgr = table_.spec().channels == ChannelOrder::kBgr;
  const bool flipped = flip_ == Flip::kHorizontal;
  if (source_channels_ == 3 && !bgr && !flipped) return row;
  std::uint8_t* out = workspace_.store_rows(static_cast<std::size_t>(size_.width) * 3);
  if (source_channels_ == 3 && !bgr) {
    mirror<3>(row, size_.width, out);
    return out;
  }
  for (int x = 0; x < size_.width; ++x) {
    const std::uint8_t* pixel = row + (flipped ? size_.width - 1 - x : x) * std::ptrdiff_t{source_channels_};
    for (int c = 0; c < 3; ++c) out[x * 3 + c] = pixel[source_channels_ == 1 ? 0 : 2 - c];
  }
  return out;
}

void ImageStore::store_pixels(int y, const std::uint8_t* row) {
  const std::uint8_t* pixels = in_tensor_channels(row);
  std::byte* out = tensor_ + y * static_cast<std::size_t>(size_.width) * 3 * table_.element_bytes();
  if (table_.planes_are_equal()) return widen(table_.plane(0), pixels, size_.width * 3, out);
  if (table_.element_bytes() == 2)
    return widen_pixels(table_, pixels, size_.width, reinterpret_cast<std::uint16_t*>(out));
  widen_pixels(table_, pixels, size_.width, reinterpret_cast<std::uint32_t*>(out));
}

// One row of every patch that it crosses. Planes first, as if for NCHW, then cut up.
void ImageStore::store_patches(int y, const std::uint8_t* row) {
  const std::size_t pitch = row_bytes(size_.width);
  std::uint8_t* scratch = workspace_.store_rows((3 + table_.element_bytes()) * pitch);
  const std::uint8_t* planes[3];
  if (table_.channels() == 1 || source_channels_ == 1) {
    std::fill_n(planes, 3, as_grey(row, scratch));
  } else {
    std::uint8_t* colours[3] = {scratch, scratch + pitch, scratch + 2 * pitch};
    kernels_.split(row, size_.width, flip_, colours);
    for (int c = 0; c < 3; ++c) planes[c] = colours[colour_of(table_.spec().channels, c)];
  }
  scatter_split(y, planes, reinterpret_cast<std::byte*>(scratch + 3 * pitch));
}

void ImageStore::scatter_split(int y, const std::uint8_t* const planes[3], std::byte* scratch) {
  for (int c = 0; c < table_.channels(); ++c) {
    widen(table_.plane(c), planes[c], size_.width, scratch);
    scatter(y, c, scratch);
  }
}

// Row `y` of one channel, as elements, to its patches.
void ImageStore::scatter(int y, int channel, const std::byte* row) {
  const Patches& patches = *table_.spec().patches;
  const std::size_t segment = patches.width * table_.element_bytes();
  const std::size_t frame = segment * patches.height;
  const std::size_t patch = frame * patches.temporal * table_.channels();
  const std::size_t group = patch * patches.merge * patches.merge;
  const int merge = patches.merge, patch_row = y / patches.height;
  const int across = size_.width / patches.width / merge;  // groups
  std::byte* out = tensor_ + group * across * (patch_row / merge) + patch * merge * (patch_row % merge) +
                   frame * patches.temporal * channel + segment * (y % patches.height);
  for (int g = 0; g < across; ++g, out += group) {
    for (int x = 0; x < merge; ++x, row += segment) {
      for (int t = 0; t < patches.temporal; ++t) std::memcpy(out + patch * x + frame * t, row, segment);
    }
  }
}

}  // namespace millrace::kernels
