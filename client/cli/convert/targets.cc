// The rows: what `millrace convert --to` can be told, and the words for it.
#include <array>
#include <limits>

#include "client/cli/convert/jpeg_targets.h"
#include "client/cli/convert/target.h"

namespace millrace::cli {
namespace {

constexpr std::array<CopyReason, 5> kWhyNotPacked{{
    {WhyCopied::kNoJpeg, "other_formats", "of other formats"},
    {WhyCopied::kProgressive, "progressive", "progressive or in several scans"},
    {WhyCopied::kNotOurs, "not_decoded", "damaged, or JPEG of a kind that is not packed"},
    {WhyCopied::kTooLarge, "too_large", "with coefficients that no picture has"},
    {WhyCopied::kOwnWay, "own_way", "that would not become the same bytes again"},
}};
constexpr std::array<CopyReason, 1> kWhyNotJpeg{{
    {WhyCopied::kNoPacked, "no_packed", "named like packed files, and JPEG"},
}};

constexpr std::array<TargetRow, 2> kTargetRows{{
    {.name = "packed",
     .words = {.doing = "packing",
               .done = "packed",
               .from = "JPEG files",
               .into = "packed files",
               .checked = "each was turned back and compared, byte for byte"},
     .most_bytes = std::uint64_t{1} << 30,
     .not_taken = WhyCopied::kNoJpeg,
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
}};

}  // namespace

std::span<const TargetRow> target_rows() {
  return kTargetRows;
}

}  // namespace millrace::cli
