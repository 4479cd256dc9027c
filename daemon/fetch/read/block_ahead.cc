#include "daemon/fetch/read/block_ahead.h"

#include <fcntl.h>

#include <algorithm>

namespace millrace {
namespace {

// Of one request the kernel reads at most what it reads ahead anyway, and forgets the rest. Linux's usual figure.
constexpr std::uint64_t kPiece = std::uint64_t{128} << 10U;

}  // namespace

std::optional<Dataset::Range> place_of_block(const Dataset& dataset, SampleId sample, std::uint32_t block_samples) {
  const std::optional<Dataset::Range> own = dataset.range_of(sample);
  if (!own) return std::nullopt;
  const std::uint64_t first = raw(sample) / block_samples * block_samples;
  const std::uint64_t last = std::min(first + block_samples, dataset.samples());
  std::uint64_t begin = own->offset, end = own->offset, wanted = 0, parts = 0;
  for (std::uint64_t i = first; i < last; ++i) {
    const std::optional<Dataset::Range> range = dataset.range_of(SampleId{i});
    if (!range || !dataset.is_same_file(sample, SampleId{i})) continue;
    begin = std::min(begin, range->offset);
    end = std::max(end, range->offset + range->length.count);
    wanted += std::min(range->length, kMostAskedAhead).count;
    ++parts;
  }
  if (parts < 2 || (end - begin) / 2 > wanted) return std::nullopt;
  return Dataset::Range{begin, std::min(Bytes{end - begin}, kMostAskedAhead)};
}

void ask_ahead(int fd, const Dataset::Range& place) {
  for (std::uint64_t done = 0; done < place.length.count; done += kPiece) {
    const std::uint64_t piece = std::min(kPiece, place.length.count - done);
    const auto offset = static_cast<off_t>(place.offset + done);
    if (posix_fadvise(fd, offset, static_cast<off_t>(piece), POSIX_FADV_WILLNEED) != 0) return;
  }
}

}  // namespace millrace
