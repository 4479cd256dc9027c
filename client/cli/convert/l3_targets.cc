#include "client/cli/convert/l3_targets.h"

#include "client/cli/convert/names.h"
#include "client/cli/convert/pictures/l3_file.h"
#include "client/cli/convert/pictures/lossless_reader.h"
#include "client/cli/convert/pictures/png_writer.h"
#include "kernels/l3/encoding/encoder.h"
#include "kernels/l3/version1.h"

namespace millrace::cli {
namespace {

using kernels::l3::Effort;

class L3Target final : public ConvertTarget {
 public:
  explicit L3Target(const TargetOptions& options) : options_(options) {}

  bool takes(std::string_view name) const override { return is_lossless_name(name); }

  Result<Made> make(const NamedFile& file, std::vector<std::uint8_t>& source_untrusted,
                    std::vector<std::uint8_t>& made) override {
    MILLRACE_TRY(WhyCopied why, read_lossless(source_untrusted, picture_));
    if (why == WhyCopied::kNothing) why = encode(made);
    if (why != WhyCopied::kNothing) return Made{.why = why};
    again_ = made;
    if (!is_of_last(again_)) return Error{Code::kInternal, "was not the same picture when its L3 file was decoded"};
    return Made{.name = name_with_ending(file.name, kL3Ending, file.siblings, is_lossless_name)};
  }

  bool is_of_last(std::vector<std::uint8_t>& there_untrusted) override {
    return read_l3(there_untrusted, back_) && back_ == picture_;
  }

 private:
  // Version 1 has no place for metadata.
  WhyCopied encode(std::vector<std::uint8_t>& made) {
    if (options_.version1) {
      for (auto* part : {&picture_.exif, &picture_.icc, &picture_.xmp}) part->clear();
      return encode_version1(picture_.to_l3(), made).empty() ? WhyCopied::kNothing : WhyCopied::kVersion1;
    }
    const Effort effort = options_.fast ? Effort::kFast : Effort::kBest;
    const bool is_held = kernels::l3::encode(picture_.to_l3(), effort, kernels::best_target(), made).empty();
    return is_held ? WhyCopied::kNothing : WhyCopied::kSides;
  }

  const TargetOptions options_;
  StoredPicture picture_, back_;
  std::vector<std::uint8_t> again_;
};

class PngTarget final : public ConvertTarget {
 public:
  bool takes(std::string_view name) const override { return is_l3_name(name); }

  Result<Made> make(const NamedFile& file, std::vector<std::uint8_t>& source_untrusted,
                    std::vector<std::uint8_t>& made) override {
    MILLRACE_TRY_VOID(read_l3(source_untrusted, picture_));
    drop_exif_prefix(picture_.exif);
    MILLRACE_TRY(const WhyCopied why, write_png_picture(picture_, made));
    if (why != WhyCopied::kNothing) return Made{.why = why};
    if (!is_of_last(made)) return Error{Code::kInternal, "was not the same picture when its PNG file was decoded"};
    return Made{.name = name_with_ending(file.name, kPngEnding, file.siblings, is_l3_name)};
  }

  bool is_of_last(std::vector<std::uint8_t>& there_untrusted) override {
    const Result<WhyCopied> why = read_png(there_untrusted, back_);
    return why && *why == WhyCopied::kNothing && back_ == picture_;
  }

 private:
  StoredPicture picture_, back_;
};

}  // namespace

std::unique_ptr<ConvertTarget> create_l3_target(const TargetOptions& options) {
  return std::make_unique<L3Target>(options);
}

std::unique_ptr<ConvertTarget> create_png_target(const TargetOptions&) {
  return std::make_unique<PngTarget>();
}

}  // namespace millrace::cli
