#include "client/cli/convert/pictures/l3_file.h"

#include <memory>

#include "client/cli/convert/pictures/lossless_reader.h"
#include "kernels/l3/decoder.h"
#include "kernels/l3/version1.h"

namespace millrace::cli {
namespace {

namespace l3 = kernels::l3;

Result<void> read_version1(PictureBytes file, StoredPicture& picture) {
  l3::Version1Image image;
  if (const std::string wrong = image.read(file); !wrong.empty()) return damaged_picture(wrong);
  MILLRACE_TRY_VOID(picture.begin({image.head().size, 3, 1}));
  if (image.decode(kernels::whole(image.head().size), {}, picture.samples()) != l3::Version1Image::Outcome::kFine)
    return damaged_picture("a patch whose rows do not add up to its size");
  return {};
}

}  // namespace

Result<void> read_l3(std::vector<std::uint8_t>& file_untrusted, StoredPicture& picture) {
  const std::size_t size = file_untrusted.size();
  file_untrusted.resize(size + l3::kPadding);
  const PictureBytes file = PictureBytes(file_untrusted).first(size);
  if (l3::is_version1(file)) return read_version1(file, picture);
  if (!l3::is_l3(file)) return damaged_picture("it does not begin as an L3 file does");
  l3::Image image;
  if (const std::string wrong = image.read(file, l3::Check::kChecksums); !wrong.empty()) return damaged_picture(wrong);
  const l3::Head& head = image.head();
  MILLRACE_TRY_VOID(picture.begin({head.size, head.channels, head.bytes()}));
  const auto decoder = std::make_unique<l3::Decoder>();
  const l3::Outcome outcome =
      decoder->decode(image, kernels::whole(head.size), l3::Form::kStored, {}, picture.samples());
  if (!outcome.is_fine()) return damaged_picture(l3::text_of(outcome));
  picture.orientation = head.orientation;
  picture.colour_bytes = head.colour_bytes;
  picture.palette.assign(image.palette().begin(), image.palette().end());
  picture.exif.assign(image.exif().begin(), image.exif().end());
  picture.icc.assign(image.icc().begin(), image.icc().end());
  picture.xmp.assign(image.xmp().begin(), image.xmp().end());
  return {};
}

}  // namespace millrace::cli
