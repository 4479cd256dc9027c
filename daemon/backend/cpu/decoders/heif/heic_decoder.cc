#include "daemon/backend/cpu/decoders/heif/heic_decoder.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>

#include "daemon/backend/cpu/decoders/heif/heic_pixels.h"
#include "daemon/backend/cpu/decoders/heif/hevc_library.h"
#include "daemon/backend/cpu/decoders/raster_request.h"
#include "daemon/heif/heif_boxes.h"
#include "daemon/heif/hevc_units.h"

namespace millrace {
namespace {

// A picture of 16 x 16 pixels in HEIC, for a decoder that has to do beforehand what decoding does once.
inline constexpr int kSmallestHeicSide = 16;
inline constexpr std::uint8_t kSmallestHeic[] = {
    0,   0,   0,   28,  102, 116, 121, 112, 104, 101, 105, 99,  0,   0,   0,   0,   109, 105, 102, 49,  104, 101, 105,
    99,  109, 105, 97,  102, 0,   0,   1,   124, 109, 101, 116, 97,  0,   0,   0,   0,   0,   0,   0,   33,  104, 100,
    108, 114, 0,   0,   0,   0,   0,   0,   0,   0,   112, 105, 99,  116, 0,   0,   0,   0,   0,   0,   0,   0,   0,
    0,   0,   0,   0,   0,   0,   0,   34,  105, 108, 111, 99,  0,   0,   0,   0,   68,  64,  0,   1,   0,   1,   0,
    0,   0,   0,   1,   160, 0,   1,   0,   0,   0,   0,   0,   0,   0,   33,  0,   0,   0,   35,  105, 105, 110, 102,
    0,   0,   0,   0,   0,   1,   0,   0,   0,   21,  105, 110, 102, 101, 2,   0,   0,   0,   0,   1,   0,   0,   104,
    118, 99,  49,  0,   0,   0,   0,   14,  112, 105, 116, 109, 0,   0,   0,   0,   0,   1,   0,   0,   0,   252, 105,
    112, 114, 112, 0,   0,   0,   220, 105, 112, 99,  111, 0,   0,   0,   117, 104, 118, 99,  67,  1,   3,   112, 0,
    0,   0,   144, 0,   0,   0,   0,   0,   30,  240, 0,   252, 253, 248, 248, 0,   0,   15,  3,   96,  0,   1,   0,
    24,  64,  1,   12,  1,   255, 255, 3,   112, 0,   0,   3,   0,   144, 0,   0,   3,   0,   0,   3,   0,   30,  186,
    2,   64,  97,  0,   1,   0,   41,  66,  1,   1,   3,   112, 0,   0,   3,   0,   144, 0,   0,   3,   0,   0,   3,
    0,   30,  160, 32,  129, 5,   150, 234, 174, 154, 230, 224, 33,  160, 192, 128, 0,   0,   12,  128, 0,   0,   3,
    0,   132, 98,  0,   1,   0,   6,   68,  1,   193, 115, 193, 137, 0,   0,   0,   19,  99,  111, 108, 114, 110, 99,
    108, 120, 0,   1,   0,   13,  0,   6,   128, 0,   0,   0,   20,  105, 115, 112, 101, 0,   0,   0,   0,   0,   0,
    0,   64,  0,   0,   0,   64,  0,   0,   0,   40,  99,  108, 97,  112, 0,   0,   0,   16,  0,   0,   0,   1,   0,
    0,   0,   16,  0,   0,   0,   1,   255, 255, 255, 208, 0,   0,   0,   2,   255, 255, 255, 208, 0,   0,   0,   2,
    0,   0,   0,   16,  112, 105, 120, 105, 0,   0,   0,   0,   3,   8,   8,   8,   0,   0,   0,   24,  105, 112, 109,
    97,  0,   0,   0,   0,   0,   0,   0,   1,   0,   1,   5,   129, 2,   3,   5,   132, 0,   0,   0,   41,  109, 100,
    97,  116, 0,   0,   0,   29,  40,  1,   175, 25,  33,  33,  14,  238, 39,  143, 254, 83,  146, 116, 138, 208, 167,
    167, 228, 201, 224, 153, 254, 50,  151, 142, 135, 32,  152,
};

constexpr std::uint64_t kMostParts = 1'000;  // as libheif has it

Error heic_unsupported(const std::string& what) {
  return {Code::kUnsupported, "this kind of HEIC is not decoded here: " + what};
}
Error heic_damaged(const std::string& what) {
  return {Code::kInvalid, "damaged HEIC: " + what};
}

kernels::Size in_kernels(Size size) {
  constexpr std::uint32_t kMost = 0x7FFFFFFF;
  return {static_cast<int>(std::min(size.width, kMost)), static_cast<int>(std::min(size.height, kMost))};
}

// One picture by libde265.
class Hevc {
 public:
  explicit Hevc(const HevcLibrary& hevc) : hevc_(hevc), decoder_(hevc.create(), hevc.destroy) {}

  // Good until this goes.
  Result<HeicPlanes> decode(const HeifItem& item, const kernels::Deadline& deadline) {
    if (!decoder_) return memory_error();
    const auto push = [&](ByteView unit) -> Result<void> {
      const de265_error pushed = hevc_.push(decoder_.get(), unit.data(), static_cast<int>(unit.size()), 0, nullptr);
      return pushed == DE265_OK ? Result<void>() : Result<void>(error_of(pushed));
    };
    MILLRACE_TRY_VOID(read_hevc_units(item.configuration, item.data, item.size, push));
    if (const de265_error flushed = hevc_.flush(decoder_.get()); flushed != DE265_OK) return error_of(flushed);
    for (int more = 1; more != 0;) {
      if (deadline.is_over()) return deadline_error();
      more = 0;
      const de265_error decoded = hevc_.decode(decoder_.get(), &more);
      if (decoded != DE265_OK) return error_of(decoded);
      // What it warns of is a part of the picture that it has not decoded, or has made up.
      if (const de265_error warned = hevc_.warning(decoder_.get()); warned != DE265_OK) return error_of(warned);
      if (const de265_image* const image = hevc_.picture(decoder_.get()); image != nullptr)
        return planes_of(image, item);
    }
    return heic_damaged("there is no picture in it");
  }

 private:
  Error error_of(de265_error error) const {
    if (error == DE265_ERROR_OUT_OF_MEMORY) return memory_error();
    return heic_damaged(hevc_.text_of(error));
  }

  Result<HeicPlanes> planes_of(const de265_image* image, const HeifItem& item) const {
    const kernels::Size size = in_kernels(item.size), found{hevc_.width(image, 0), hevc_.height(image, 0)};
    if (found != size) return size_error(size, found);
    HeicPlanes planes;
    const de265_chroma chroma = hevc_.chroma(image);
    planes.is_grey = chroma == de265_chroma_mono;
    planes.chroma_right = chroma == de265_chroma_420 || chroma == de265_chroma_422 ? 1 : 0;
    planes.chroma_down = chroma == de265_chroma_420 ? 1 : 0;
    planes.bits = hevc_.bits(image, 0);
    planes.is_full_range = hevc_.is_full_range(image) != 0;
    planes.matrix = hevc_.matrix(image);
    if (planes.bits < 8 || planes.bits > 16) return heic_unsupported(std::to_string(planes.bits) + " bits a sample");
    for (int i = 0; i < (planes.is_grey ? 1 : 3); ++i) {
      planes.planes[i] = hevc_.plane(image, i, &planes.strides[i]);
      if (planes.planes[i] == nullptr) return heic_damaged("a plane of it is missing");
      if (hevc_.bits(image, i) != planes.bits) return heic_unsupported("luma and chroma of different depths");
    }
    if (planes.is_grey) return planes;
    planes.chroma_columns = hevc_.width(image, 1);
    planes.chroma_rows = hevc_.height(image, 1);
    if (planes.chroma_columns < 1 || planes.chroma_rows < 1) return heic_damaged("it has no colour");
    return planes;
  }

  const HevcLibrary& hevc_;
  std::unique_ptr<de265_decoder_context, decltype(&::de265_free_decoder)> decoder_;
};

// One decoding: the box's pixels out of the picture or its parts.
class HeicReading {
 public:
  HeicReading(const HevcLibrary& hevc, const HeifItems& items, const DecodeRequest& request, PixelBuffer& buffer)
      : hevc_(hevc), items_(items), request_(request), buffer_(buffer) {}

  Result<kernels::U8View> run() {
    const HeifItem whole = items_.item(items_.primary());
    colours_ = whole.colours;
    if (items_.is_premultiplied()) return heic_unsupported("colours that were multiplied by alpha");
    if (whole.has_other_crop) return heic_unsupported("its \"clap\" box");
    place_ = whole.crop ? kernels::Box{whole.crop->left, whole.crop->top, whole.crop->width, whole.crop->height}
                        : kernels::whole(in_kernels(whole.size));
    MILLRACE_TRY_VOID(check_size({place_.width, place_.height}, request_));
    is_smoothed_420_ = whole.is_smoothed_420;
    is_smoothed_422_ = whole.is_smoothed_422;
    if (whole.type == fourcc("grid")) {
      MILLRACE_TRY_VOID(read_grid(whole));
    } else {
      MILLRACE_TRY_VOID(read_part(whole, 0, 0));
    }
    return kernels::U8View(*out_);
  }

 private:
  Result<void> read_grid(const HeifItem& whole) {
    const std::optional<HeifGrid> grid = read_heif_grid(whole.data);
    if (!grid || grid->size != whole.size) return heic_damaged("its grid makes no sense");
    const std::uint64_t parts = std::uint64_t{grid->columns} * grid->rows;
    if (parts > kMostParts) return heic_unsupported("a grid of " + std::to_string(parts) + " parts");
    Size first;
    for (std::uint32_t number = 0; number < parts; ++number) {
      const auto id = items_.part(items_.primary(), number);
      if (!id) return heic_damaged("parts of its grid are missing");
      const HeifItem part = items_.item(*id);
      if (number == 0) first = part.size;
      const bool covers = std::uint64_t{first.width} * grid->columns >= grid->size.width &&
                          std::uint64_t{first.height} * grid->rows >= grid->size.height;
      if (part.size != first || !covers || first.width > grid->size.width + std::uint64_t{4096} ||
          first.height > grid->size.height + std::uint64_t{4096})
        return heic_damaged("the parts of its grid do not fit");
      if (part.crop || part.has_other_crop || part.turned != 1)
        return heic_unsupported("parts of a grid that are turned or cut");
      MILLRACE_TRY_VOID(read_part(part, std::uint64_t{number % grid->columns} * first.width,
                                  std::uint64_t{number / grid->columns} * first.height));
    }
    return {};
  }

  Result<void> read_part(const HeifItem& part, std::uint64_t left, std::uint64_t top) {
    if (part.type != fourcc("hvc1"))
      return heic_unsupported("a picture that is not HEVC, or put together in other ways");
    if (part.data.empty()) return heic_unsupported("image data that is missing or in pieces");
    Hevc hevc(hevc_);
    MILLRACE_TRY(HeicPlanes planes, hevc.decode(part, request_.deadline));
    if (const auto colours = colours_ ? colours_ : part.colours) {
      planes.matrix = static_cast<int>(colours->matrix);
      planes.is_full_range = colours->is_full_range;
    }
    if (planes.chroma_right == 1) planes.is_smoothed = planes.chroma_down == 1 ? is_smoothed_420_ : is_smoothed_422_;
    // What "clap" cuts off has no part in it.
    const auto shown = [](std::int64_t end, int shift) {
      return static_cast<int>(std::max<std::int64_t>((end + shift) >> shift, 1));
    };
    planes.chroma_columns =
        std::min(planes.chroma_columns,
                 shown(place_.left + place_.width - static_cast<std::int64_t>(left), planes.chroma_right));
    planes.chroma_rows = std::min(
        planes.chroma_rows, shown(place_.top + place_.height - static_cast<std::int64_t>(top), planes.chroma_down));
    if (!is_made_rgb(planes)) return heic_unsupported("matrix " + std::to_string(planes.matrix));
    if (!out_) {
      MILLRACE_TRY(const kernels::MutableU8View out, box_in(buffer_, request_, planes.is_grey ? 1 : 3));
      out_ = out;
    }
    if (out_->channels != (planes.is_grey ? 1 : 3)) return heic_unsupported("a grid of grey and of colour");
    return keep(planes, part.size, static_cast<std::int64_t>(left), static_cast<std::int64_t>(top));
  }

  // What of the part at `left`, `top` is the box's.
  Result<void> keep(const HeicPlanes& planes, Size size, std::int64_t left, std::int64_t top) {
    const kernels::Box& box = request_.box;
    const std::int64_t box_left = std::int64_t{place_.left} + box.left, box_top = std::int64_t{place_.top} + box.top;
    const std::int64_t begin = std::max(left, box_left), end = std::min(left + size.width, box_left + box.width);
    const std::int64_t first = std::max(top, box_top), last = std::min(top + size.height, box_top + box.height);
    for (std::int64_t y = first; y < last && begin < end; ++y) {
      if (y % 64 == 0 && request_.deadline.is_over()) return deadline_error();
      convert_heic_row(planes, static_cast<int>(y - top), static_cast<int>(begin - left), static_cast<int>(end - begin),
                       out_->row(static_cast<int>(y - box_top)) + (begin - box_left) * out_->channels);
    }
    return {};
  }

  const HevcLibrary& hevc_;
  const HeifItems& items_;
  const DecodeRequest& request_;
  PixelBuffer& buffer_;
  std::optional<HeifItem::Colours> colours_;
  kernels::Box place_{};
  bool is_smoothed_420_ = false, is_smoothed_422_ = false;
  std::optional<kernels::MutableU8View> out_;
};

}  // namespace

Result<void> can_decode_heic() {
  MILLRACE_TRY_VOID(hevc_library());
  return {};
}

Result<kernels::U8View> decode_heic(const DecodeRequest& request, PixelBuffer& buffer) {
  MILLRACE_TRY(const HevcLibrary* const hevc, hevc_library());
  const Result<HeifItems> items = HeifItems::open(ByteReader(request.bytes_untrusted));
  if (!items) return Error{items.error().code, "a broken HEIC: " + items.error().message};
  return HeicReading(*hevc, *items, request, buffer).run();
}

void prepare_heic() {
  const auto* const begin = reinterpret_cast<const std::byte*>(kSmallestHeic);
  PixelBuffer buffer;
  const auto made = decode_heic({{begin, sizeof kSmallestHeic},
                                 {kSmallestHeicSide, kSmallestHeicSide},
                                 {0, 0, kSmallestHeicSide, kSmallestHeicSide},
                                 Clock::now() + std::chrono::seconds(5)},
                                buffer);
  static_cast<void>(made);
}

}  // namespace millrace
