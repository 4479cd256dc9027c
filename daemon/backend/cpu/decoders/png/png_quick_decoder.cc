#include "daemon/backend/cpu/decoders/png/png_quick_decoder.h"

#include <array>
#include <cstring>
#include <memory>
#include <new>

#include "daemon/backend/cpu/decoders/png/png_pixels.h"
#include "daemon/backend/cpu/decoders/png/png_quick_rows.h"
#include "kernels/cpu/png/unfilter.h"

namespace millrace {
namespace {

using kernels::png::Filter;
using kernels::png::kRowSlack;
using kernels::png::UnfilterRow;

static_assert(PixelBuffer::kSlack >= kRowSlack && PngQuickRows::kSlack >= kRowSlack);

// Undoes rows one after the other. Where they are pixels then, those wanted go to their place at once.
class Unfilter {
 public:
  static std::unique_ptr<Unfilter> create(const PngPixels& pixels, kernels::Target target) {
    std::unique_ptr<Unfilter> unfilter(new (std::nothrow) Unfilter(pixels, target));
    return unfilter && unfilter->memory_ ? std::move(unfilter) : nullptr;
  }

  // `row`, with its filter byte, which is a filter; the undone row in `out`, or in a place of its own for nullptr.
  const std::uint8_t* operator()(const std::uint8_t* row, std::uint8_t* out) {
    if (out == nullptr) out = above_ == place(0) ? place(1) : place(0);
    by_filter_[row[0]](row + 1, above_, bytes_, out);
    above_ = out;
    return out;
  }

 private:
  Unfilter(const PngPixels& pixels, kernels::Target target)
      : bytes_(pixels.file_row()), memory_(new (std::nothrow) std::uint8_t[2 * (bytes_ + kRowSlack)]) {
    for (std::uint8_t i = 0; i < by_filter_.size(); ++i)
      by_filter_[i] = kernels::png::unfilter_row(target, static_cast<Filter>(i), pixels.file_pixel());
    if (memory_) std::memset(memory_.get(), 0, bytes_ + kRowSlack);
    above_ = place(0);
  }

  std::uint8_t* place(std::size_t i) const { return memory_.get() + i * (bytes_ + kRowSlack); }

  std::array<UnfilterRow, kernels::png::kFilters> by_filter_;
  std::size_t bytes_;
  std::unique_ptr<std::uint8_t[]> memory_;  // two rows
  const std::uint8_t* above_;
};

kernels::U8View view_of(const DecodeRequest& request, const PngPixels& pixels, const std::uint8_t* memory) {
  const kernels::U8View rows{memory, request.stored.width, request.box.height, pixels.channels(),
                             static_cast<std::ptrdiff_t>(pixels.row())};
  return rows.crop({request.box.left, 0, request.box.width, request.box.height});
}

// All rows are read, for the verdict; none is undone below the box. What the stream took of the image data; 0: it is
// odd, or the time is over.
std::uint64_t read_rows(const DecodeRequest& request, const PngPixels& pixels, PngQuickRows& rows, Unfilter& unfilter,
                        std::uint8_t* memory) {
  const kernels::Box& box = request.box;
  for (int y = 0; y < request.stored.height; ++y) {
    const std::uint8_t* const row = rows.next();
    if (row == nullptr || row[0] >= kernels::png::kFilters) return 0;
    if (y >= box.top + box.height) continue;
    std::uint8_t* const place = y < box.top ? nullptr : memory + static_cast<std::size_t>(y - box.top) * pixels.row();
    const std::uint8_t* const undone = unfilter(row, pixels.are_there() ? place : nullptr);
    if (place != nullptr && !pixels.are_there()) pixels.convert(undone, place);
  }
  return rows.finish();
}

// The walk's place where the stream has ended, if the chunk around it is whole: else the verdict depends on whose walk
// it is. nullopt: it is not.
std::optional<PngChunks> at_end(PngChunks chunks, std::uint64_t taken) {
  for (std::uint64_t seen = 0; seen < taken;) seen += chunks.next_image_data().size();
  if (!chunks.has_whole_image_data()) return std::nullopt;
  return chunks;
}

}  // namespace

std::optional<Result<kernels::U8View>> decode_png_quickly(const DecodeRequest& request, PngChunks chunks,
                                                          PixelBuffer& buffer) {
  if (chunks.header().interlaced) return std::nullopt;
  PngChunks behind = chunks;
  const PngPixels pixels(chunks, request.target, request.indices);
  const auto rows =
      PngQuickRows::create(chunks, {pixels.file_row() + 1, chunks.header().height}, request.target, request.deadline);
  const auto unfilter = Unfilter::create(pixels, request.target);
  std::uint8_t* const memory = buffer.reserve(pixels.row() * static_cast<std::size_t>(request.box.height));
  if (!rows || !unfilter || memory == nullptr) return memory_error();
  const std::uint64_t taken = read_rows(request, pixels, *rows, *unfilter, memory);
  if (rows->is_late()) return deadline_error();
  auto rest = taken == 0 ? std::nullopt : at_end(std::move(behind), taken);
  if (!rest) return std::nullopt;
  if (const Result<void> checked = rest->check_rest(); !checked) return checked.error();
  return view_of(request, pixels, memory);
}

}  // namespace millrace
