#include "kernels/l3/version1.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>

#include "kernels/l3/image.h"

namespace millrace::kernels::l3 {
namespace {

constexpr std::array<std::uint8_t, 4> kMagic{'L', 'L', 'L', '.'};
constexpr std::size_t kWidthAt = 4, kHeightAt = 8, kPatchAt = 12, kSizesAt = 13;
constexpr int kColours = 3, kMostPatch = 128;
constexpr int kHeadBits = 12;  // of a row: 4 of the width of its deltas, 8 of the least of them

bool is_patch(int side) {
  return side == 32 || side == 64 || side == 128;
}

std::size_t row_bytes(int patch, int bits) {
  return 2 + static_cast<std::size_t>(patch * bits) / 8;
}

std::uint32_t number_at(FileBytes file, std::size_t at, int bytes) {
  std::uint32_t number = 0;
  for (int i = bytes; i-- > 0;) number = number << 8U | file[at + static_cast<std::size_t>(i)];
  return number;
}

// What the authors' decoder expects at column `x` of a row, from the row above. The second comparison of the third case
// reads like a slip, and it is what their files are made by.
std::uint8_t expected(const std::uint8_t* above, int x, int patch) {
  const int a = x == 0 ? 0 : above[x - 1], b = above[x], c = x == patch - 1 ? 0 : above[x + 1];
  const int pa = std::abs(c - b), pb = std::abs(a + c - 2 * b), pc = std::abs(a - b);
  if (a == 0) return static_cast<std::uint8_t>(pb <= pc ? b : c);
  if (c == 0) return static_cast<std::uint8_t>(pa <= pb ? a : b);
  if (pa <= pb && pa <= pc) return static_cast<std::uint8_t>(a);
  return static_cast<std::uint8_t>(pa <= pc ? b : c);
}

// All rows of a patch. False: they do not add up to its size.
bool decode_patch(FileBytes patch_untrusted, int patch, std::uint8_t* out) {
  const std::array<std::uint8_t, kMostPatch> zeros{};
  for (int y = 0; y < patch; ++y, out += patch) {
    if (patch_untrusted.size() < 2) return false;
    const int bits = patch_untrusted[0] & 15;
    if (bits > 8 || patch_untrusted.size() < row_bytes(patch, bits)) return false;
    const unsigned least = static_cast<unsigned>(patch_untrusted[0] >> 4U | patch_untrusted[1] << 4U) & 255U;
    const std::uint8_t* const above = y == 0 ? zeros.data() : out - patch;
    for (int x = 0, bit = kHeadBits; x < patch; ++x, bit += bits) {
      const auto at = static_cast<std::size_t>(bit / 8);
      const unsigned behind = at + 1 < patch_untrusted.size() ? patch_untrusted[at + 1] : 0U;
      const unsigned delta = (patch_untrusted[at] | behind << 8U) >> (bit % 8) & ((1U << bits) - 1);
      const unsigned from = y == 0 ? 0U : expected(above, x, patch);
      out[x] = static_cast<std::uint8_t>(from + least + delta);
    }
    patch_untrusted = patch_untrusted.subspan(row_bytes(patch, bits));
  }
  return patch_untrusted.empty();
}

void encode_row(const std::uint8_t* above, const std::uint8_t* row, int patch, std::vector<std::uint8_t>& out) {
  std::array<int, kMostPatch> residuals{};
  for (int x = 0; x < patch; ++x)
    residuals[static_cast<std::size_t>(x)] =
        static_cast<std::int8_t>(row[x] - (above == nullptr ? 0 : expected(above, x, patch)));
  const auto [least, most] = std::minmax_element(residuals.begin(), residuals.begin() + patch);
  const int base = *least, bits = static_cast<int>(std::bit_width(static_cast<unsigned>(*most - base)));
  const std::size_t begin = out.size();
  out.resize(begin + row_bytes(patch, bits));
  auto put = [&, bit = 0](unsigned number, int count) mutable {
    for (int i = 0; i < count; ++i, ++bit) {
      std::uint8_t& byte = out[begin + static_cast<std::size_t>(bit / 8)];
      byte = static_cast<std::uint8_t>(byte | (number >> i & 1U) << (bit % 8));
    }
  };
  put(static_cast<unsigned>(bits), 4);
  put(static_cast<unsigned>(base) & 255U, 8);
  for (int x = 0; x < patch; ++x) put(static_cast<unsigned>(residuals[static_cast<std::size_t>(x)] - base), bits);
}

std::string refusal(const Picture& picture, int patch) {
  const SampleView& samples = picture.samples;
  if (samples.channels != kColours || samples.bytes != 1 || !picture.palette.empty()) return "other than RGB of 8 bits";
  if (!is_patch(patch)) return "patches of other than 32, 64 or 128 pixels a side";
  if (samples.size.width < patch || samples.size.height < patch || samples.size.width % patch != 0 ||
      samples.size.height % patch != 0)
    return "sides that are no multiple of " + std::to_string(patch);
  if (picture.orientation != 1) return "an orientation";
  return {};
}

// Rows of a patch of one channel.
void take_patch(const SampleView& samples, int channel, int left, int top, int patch, std::uint8_t* out) {
  for (int y = 0; y < patch; ++y) {
    const std::uint8_t* from = samples.row(top + y) + std::ptrdiff_t{left} * kColours + channel;
    for (int x = 0; x < patch; ++x, from += kColours) *out++ = *from;
  }
}

}  // namespace

bool is_version1(FileBytes file_untrusted) {
  return file_untrusted.size() >= kMagic.size() && std::equal(kMagic.begin(), kMagic.end(), file_untrusted.begin());
}

std::string read_version1_head(FileBytes file_untrusted, Version1Head& head) {
  if (file_untrusted.size() < kSizesAt) return "cut off";
  const std::uint32_t width = number_at(file_untrusted, kWidthAt, 4), height = number_at(file_untrusted, kHeightAt, 4);
  head.patch = file_untrusted[kPatchAt];
  if (!is_patch(head.patch)) return "its patches have " + std::to_string(head.patch) + " pixels a side";
  const auto side = static_cast<std::uint32_t>(head.patch);
  const std::string size = std::to_string(width) + "x" + std::to_string(height);
  if (width < 1 || width > kMostSide || height < 1 || height > kMostSide || std::uint64_t{width} * height > kMostPixels)
    return "its size is " + size;
  if (width % side != 0 || height % side != 0)
    return "its size is " + size + ", and its encoder drops what is beyond a multiple of " + std::to_string(side);
  head.size = {static_cast<int>(width), static_cast<int>(height)};
  return {};
}

std::string Version1Image::read(FileBytes file_untrusted) {
  if (!is_version1(file_untrusted)) return "it does not begin as such a file does";
  if (std::string wrong = read_version1_head(file_untrusted, head_); !wrong.empty()) return wrong;
  const std::size_t patches = head_.patches() * kColours;
  data_at_ = kSizesAt + 2 * patches;
  if (file_untrusted.size() < data_at_) return "cut off";
  ends_.resize(patches);
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < patches; ++i) {
    end += number_at(file_untrusted, kSizesAt + 2 * i, 2);
    if (end > file_untrusted.size() - data_at_ || end > UINT32_MAX) return "cut off";
    ends_[i] = static_cast<std::uint32_t>(end);
  }
  if (const std::uint64_t more = file_untrusted.size() - data_at_ - end; more != 0)
    return std::to_string(more) + " bytes follow its last patch";
  file_ = file_untrusted;
  return {};
}

FileBytes Version1Image::patch(int channel, std::size_t index) const {
  const std::size_t i = static_cast<std::size_t>(channel) * head_.patches() + index;
  const std::size_t begin = i == 0 ? 0 : ends_[i - 1];
  return file_.subspan(data_at_ + begin, ends_[i] - begin);
}

Version1Image::Outcome Version1Image::decode(const Box& box, const Deadline& deadline,
                                             const MutableSampleView& out) const {
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(head_.patch * head_.patch));
  const int side = head_.patch, across = head_.size.width / side;
  for (int row = box.top / side; row * side < box.top + box.height; ++row) {
    for (int column = box.left / side; column * side < box.left + box.width; ++column) {
      if (deadline.is_over()) return Outcome::kLate;
      const int left = std::max(box.left, column * side), right = std::min(box.left + box.width, (column + 1) * side);
      const int top = std::max(box.top, row * side), bottom = std::min(box.top + box.height, (row + 1) * side);
      for (int channel = 0; channel < kColours; ++channel) {
        const auto index =
            static_cast<std::size_t>(row) * static_cast<std::size_t>(across) + static_cast<std::size_t>(column);
        if (!decode_patch(patch(channel, index), side, pixels.data())) return Outcome::kBroken;
        for (int y = top; y < bottom; ++y) {
          const std::uint8_t* from = pixels.data() + (y - row * side) * side + left - column * side;
          std::uint8_t* to = out.row(y - box.top) + std::ptrdiff_t{left - box.left} * kColours + channel;
          for (int x = left; x < right; ++x, to += kColours) *to = *from++;
        }
      }
    }
  }
  return Outcome::kFine;
}

std::string encode_version1(const Picture& picture, std::vector<std::uint8_t>& out, int patch) {
  if (std::string what = refusal(picture, patch); !what.empty()) return what;
  const Version1Head head{picture.samples.size, patch};
  out.assign(kMagic.begin(), kMagic.end());
  for (const int side : {head.size.width, head.size.height}) {
    for (int i = 0; i < 4; ++i) out.push_back(static_cast<std::uint8_t>(side >> (8 * i)));
  }
  out.push_back(static_cast<std::uint8_t>(patch));
  std::size_t size_at = out.size();
  out.resize(size_at + 2 * kColours * head.patches());
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(patch * patch));
  for (int channel = 0; channel < kColours; ++channel) {
    for (int top = 0; top < head.size.height; top += patch) {
      for (int left = 0; left < head.size.width; left += patch, size_at += 2) {
        const std::size_t begin = out.size();
        take_patch(picture.samples, channel, left, top, patch, pixels.data());
        for (int y = 0; y < patch; ++y)
          encode_row(y == 0 ? nullptr : pixels.data() + (y - 1) * patch, pixels.data() + y * patch, patch, out);
        const std::size_t bytes = out.size() - begin;  // at most patch * (2 + patch): below 2^16
        out[size_at] = static_cast<std::uint8_t>(bytes);
        out[size_at + 1] = static_cast<std::uint8_t>(bytes >> 8U);
      }
    }
  }
  return {};
}

}  // namespace millrace::kernels::l3
