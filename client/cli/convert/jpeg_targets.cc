#include "client/cli/convert/jpeg_targets.h"

#include "client/cli/convert/file_packer.h"
#include "client/cli/convert/names.h"

namespace millrace::cli {
namespace {

class PackedTarget final : public ConvertTarget {
 public:
  bool takes(std::string_view name) const override { return is_jpeg_name(name); }

  Result<Made> make(const NamedFile& file, std::vector<std::uint8_t>& source_untrusted,
                    std::vector<std::uint8_t>& made) override {
    source_ = &source_untrusted;
    const PackedName name = packed_name(file.name, file.siblings);
    const WhyCopied why = packer_.pack(source_untrusted, name.ending, made);
    if (why != WhyCopied::kNothing) return Made{.why = why};
    return Made{.name = name.name};
  }

  bool is_of_last(std::vector<std::uint8_t>& there_untrusted) override {
    return packer_.restore(there_untrusted, back_).empty() && back_ == *source_;
  }

 private:
  FilePacker packer_;
  const std::vector<std::uint8_t>* source_ = nullptr;
  std::vector<std::uint8_t> back_;
};

class JpegTarget final : public ConvertTarget {
 public:
  bool takes(std::string_view name) const override { return is_packed_name(name); }

  Result<Made> make(const NamedFile& file, std::vector<std::uint8_t>& source_untrusted,
                    std::vector<std::uint8_t>& made) override {
    if (is_jpeg(source_untrusted)) return Made{.why = WhyCopied::kNoPacked};
    kernels::mrp::PackedFile packed;
    std::string wrong = read_packed_file(source_untrusted, packed);
    if (wrong.empty() && packed.way_back == kernels::mrp::WayBack::kNo) return Made{};
    const std::string name = jpeg_name(file.name, packed.ending);
    if (wrong.empty()) wrong = packer_.restore(source_untrusted, made);
    if (!wrong.empty()) return Error{Code::kInvalid, "is damaged: " + wrong};
    made_ = &made;
    return Made{.name = name};
  }

  bool is_of_last(std::vector<std::uint8_t>& there_untrusted) override { return there_untrusted == *made_; }

 private:
  FilePacker packer_;
  const std::vector<std::uint8_t>* made_ = nullptr;
};

}  // namespace

std::unique_ptr<ConvertTarget> create_packed_target(const TargetOptions&) {
  return std::make_unique<PackedTarget>();
}

std::unique_ptr<ConvertTarget> create_jpeg_target(const TargetOptions&) {
  return std::make_unique<JpegTarget>();
}

}  // namespace millrace::cli
