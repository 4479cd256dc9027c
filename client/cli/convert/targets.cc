// The rows: what `millrace convert --to` can be told, and the words for it.
#include <array>
#include <limits>

#include "client/cli/convert/jpeg_targets.h"
#include "client/cli/convert/l3_targets.h"
#include "client/cli/convert/target.h"

namespace millrace::cli {
namespace {

constexpr std::array<CopyReason, 5> kWhyNotPacked{{
    {WhyCopied::kOtherFormat, "other_formats", "of other formats"},
    {WhyCopied::kProgressive, "progressive", "progressive or in several scans"},
    {WhyCopied::kNotOurs, "not_decoded", "damaged, or JPEG of a kind that is not packed"},
    {WhyCopied::kTooLarge, "too_large", "with coefficients that no picture has"},
    {WhyCopied::kOwnWay, "own_way", "that would not become the same bytes again"},
}};
constexpr std::array<CopyReason, 1> kWhyNotJpeg{{
    {WhyCopied::kNoPacked, "no_packed", "named like packed files, and JPEG"},
}};

constexpr std::array<CopyReason, 11> kWhyNotL3{{
    {WhyCopied::kOtherFormat, "other_formats", "of other formats"},
    {WhyCopied::kLossy, "lossy", "lossy: WebP, or TIFF with JPEG in it"},
    {WhyCopied::kSeveral, "several_pictures", "animated, or of several pictures"},
    {WhyCopied::kCmyk, "cmyk", "CMYK"},
    {WhyCopied::kSampleKind, "sample_kind", "with samples of floating point, or of more than 16 bits"},
    {WhyCopied::kChannels, "channels", "with more than 4 channels"},
    {WhyCopied::kColourKey, "transparent_colour", "PNG with one colour that is transparent"},
    {WhyCopied::kScaled, "scaled", "PNM with another largest sample than 255, or 65,535 of grey"},
    {WhyCopied::kKind, "rare_kind", "of a rare kind of their format"},
    {WhyCopied::kSides, "too_large", "larger than L3 holds"},
    {WhyCopied::kVersion1, "no_version_1",
     "that version 1 does not hold: RGB of 8 bits, upright, with sides that are multiples of 64"},
}};
constexpr std::array<CopyReason, 1> kWhyNotPng{{
    {WhyCopied::kMetadata, "metadata", "with metadata that PNG does not hold, or EXIF of another orientation"},
}};
constexpr TargetRow::Words picture_words(const char* from, const char* into) {
  return {.doing = "converting",
          .done = "converted",
          .from = from,
          .into = into,
          .checked = "each was decoded again and compared, sample by sample"};
}

constexpr std::array<TargetRow, 4> kTargetRows{{
    {.name = "packed",
     .words = {.doing = "packing",
               .done = "packed",
               .from = "JPEG files",
               .into = "packed files",
               .checked = "each was turned back and compared, byte for byte"},
     .most_bytes = std::uint64_t{1} << 30,
     .not_taken = WhyCopied::kOtherFormat,
     .reasons = kWhyNotPacked,
     .create = create_packed_target},
    {.name = "jpeg",
     .words = {.doing = "turning back",
               .done = "turned back",
               .from = "packed files",
               .into = "JPEG files",
               .checked = "each is the file that was packed, by its hash"},
     .most_bytes = std::numeric_limits<std::uint64_t>::max(),
     .not_taken = WhyCopied::kNothing,
     .reasons = kWhyNotJpeg,
     .create = create_jpeg_target},
    {.name = "l3",
     .words = picture_words("picture files", "L3 files"),
     .most_bytes = std::uint64_t{1} << 33,
     .not_taken = WhyCopied::kOtherFormat,
     .reasons = kWhyNotL3,
     .create = create_l3_target},
    {.name = "png",
     .words = picture_words("L3 files", "PNG files"),
     .most_bytes = std::uint64_t{1} << 33,
     .not_taken = WhyCopied::kNothing,
     .reasons = kWhyNotPng,
     .create = create_png_target},
}};

}  // namespace

std::span<const TargetRow> target_rows() {
  return kTargetRows;
}

}  // namespace millrace::cli
