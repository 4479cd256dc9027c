#include "client/cli/convert/pictures/stored_picture.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

#include "kernels/l3/image.h"
#include "proto/metadata/exif_orientation.h"

namespace millrace::cli {

Result<void> StoredPicture::begin(const Shape& shape) {
  shape_ = shape;
  orientation = 1;
  colour_bytes = 0;
  for (auto* part : {&palette, &exif, &icc, &xmp}) part->clear();
  if (samples_ && sample_bytes() <= room_) return {};
  samples_.reset();
  samples_.reset(new (std::nothrow) std::uint8_t[sample_bytes()]);
  room_ = samples_ ? sample_bytes() : 0;
  if (!samples_) return Error{Code::kInvalid, "has more pixels than there is memory for"};
  return {};
}

kernels::l3::MutableSampleView StoredPicture::samples() {
  return {samples_.get(), shape_.size, shape_.channels, shape_.bytes, static_cast<std::ptrdiff_t>(row_bytes())};
}

kernels::l3::Picture StoredPicture::to_l3() const {
  return {
      .samples = {samples_.get(), shape_.size, shape_.channels, shape_.bytes, static_cast<std::ptrdiff_t>(row_bytes())},
      .orientation = orientation,
      .palette = palette,
      .colour_bytes = colour_bytes,
      .exif = exif,
      .icc = icc,
      .xmp = xmp};
}

void StoredPicture::drop_equal_channels() {
  if (shape_.channels != 3 || shape_.bytes != 1) return;
  const std::size_t pixels = sample_bytes() / 3;
  const std::uint8_t* from = samples_.get();
  for (std::size_t i = 0; i < pixels; ++i, from += 3) {
    if (from[1] != from[0] || from[2] != from[0]) return;
  }
  for (std::size_t i = 0; i < pixels; ++i) samples_[i] = samples_[3 * i];
  shape_.channels = 1;
}

bool operator==(const StoredPicture& a, const StoredPicture& b) {
  return a.shape_ == b.shape_ && a.orientation == b.orientation && a.colour_bytes == b.colour_bytes &&
         a.palette == b.palette && a.exif == b.exif && a.icc == b.icc && a.xmp == b.xmp &&
         std::memcmp(a.samples_.get(), b.samples_.get(), a.sample_bytes()) == 0;
}

bool is_l3_size(std::uint64_t width, std::uint64_t height) {
  using namespace kernels::l3;
  return width >= 1 && height >= 1 && width <= kMostSide && height <= kMostSide && width * height <= kMostPixels;
}

void assign(std::vector<std::uint8_t>& to, const void* from, std::size_t bytes) {
  const auto* const begin = static_cast<const std::uint8_t*>(from);
  to.assign(begin, begin + bytes);
}

int valid_orientation(std::optional<std::uint32_t> stated) {
  return stated && *stated >= 1 && *stated <= 8 ? static_cast<int>(*stated) : 1;
}

int orientation_by(PictureBytes exif, PictureBytes xmp) {
  const std::optional<std::uint32_t> stated = exif_orientation(std::as_bytes(exif));
  return valid_orientation(stated ? stated : xmp_orientation(std::as_bytes(xmp)));
}

void drop_exif_prefix(std::vector<std::uint8_t>& exif) {
  constexpr std::array<std::uint8_t, 6> kPrefix{'E', 'x', 'i', 'f', 0, 0};
  const bool has_it = exif.size() >= kPrefix.size() && std::equal(kPrefix.begin(), kPrefix.end(), exif.begin());
  if (has_it) exif.erase(exif.begin(), exif.begin() + kPrefix.size());
}

}  // namespace millrace::cli
