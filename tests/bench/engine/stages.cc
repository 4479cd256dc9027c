#include "tests/bench/engine/stages.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>

#include "daemon/backend/cpu/making/image_maker.h"
#include "kernels/cpu/jpeg/dct/fast_dct.h"
#include "kernels/cpu/jpeg/dct/packed_dct.h"
#include "kernels/cpu/rows/row_kernels.h"
#include "kernels/cpu/store.h"
#include "kernels/cpu/workspace.h"
#include "tests/bench/engine/engine_rig.h"

namespace millrace::bench {
namespace {

using kernels::Target;
using kernels::jpeg::Precision;

constexpr std::size_t kPhotos = 40;       // scalar code is slow
constexpr kernels::Size kCrop{352, 272};  // about what a random crop has
constexpr kernels::Size kTo{224, 224};
constexpr int kRepeats = 20;  // of what takes no photograph

// A packed photograph with the factors of its components.
struct PackedPhoto {
  kernels::packed::PackedImage image;
  std::vector<kernels::jpeg::Dequantiser> dequantisers;
};

struct Photos {
  std::vector<Photo> files, forms;
  std::vector<PackedPhoto> packed;
  double blocks = 0;
};

Photos photos_for_stages(const BenchOptions& options) {
  Photos photos;
  std::size_t files = 0;
  photos.files = load_photos(options.data, files);
  if (photos.files.size() > kPhotos) photos.files.erase(photos.files.begin() + kPhotos, photos.files.end());
  photos.forms = packed_photos(photos.files);
  for (std::size_t i = 0; i < photos.files.size(); ++i) {
    const ByteView bytes = photos.forms[i].image.kept->bytes->view();
    PackedPhoto packed;
    if (!packed.image.read({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()},
                           kernels::packed::Check::kShape))
      broken("a packed photograph was not read");
    const kernels::jpeg::Header header = read_header(photos.files[i]);
    for (int component = 0; component < header.components; ++component) {
      const auto& quant = *header.quant[header.component[static_cast<std::size_t>(component)].quant];
      packed.dequantisers.push_back(kernels::jpeg::make_dequantiser(quant));
      kernels::jpeg::add_fast_factors(quant, packed.dequantisers.back());
    }
    photos.blocks += static_cast<double>(packed.image.grid().blocks());
    photos.packed.push_back(std::move(packed));
  }
  return photos;
}

// Goes through all groups of all photographs, the next one being brought meanwhile as the assembler does it.
// take(group, photograph)
template <class Take>
void each_group(const std::vector<PackedPhoto>& photos, Take&& take) {
  for (const PackedPhoto& photo : photos) {
    const std::size_t groups = photo.image.grid().groups();
    for (std::size_t i = 0; i < groups; ++i) {
      const kernels::packed::Group next = photo.image.group(i + 1 < groups ? i + 1 : i);
      for (std::size_t at = 0; at < 512; at += 64) __builtin_prefetch(next.begin + at);
      take(photo.image.group(i), photo);
    }
  }
}

// The stages with one instruction set.
class Stages {
 public:
  Stages(Target target, Photos& photos, ImageCache& cache)
      : photos_(photos),
        decoder_(target),
        workspace_(target),
        plain_(JpegPath::kFastest, CpuVariant{.target = target}),
        indexed_(JpegPath::kFastest, CpuVariant{.target = target}, &cache),
        fused_(target),
        apart_(target, kernels::jpeg::PackedDct::Loops::kApart),
        unpacker_(kernels::packed::unpacker(target)),
        pixel_rows_(kernels::jpeg::pixel_row_kernels(target)),
        rows_(kernels::row_kernels(target)),
        plan_(workspace_.plan({3, kCrop, kTo, kernels::whole(kTo), kernels::Filter::kBilinear})),
        quad_(kernels::quad_bytes(3 * kTo.width) / sizeof(kernels::Line) + 1) {
    std::mt19937 random(1);
    for (std::uint8_t& sample : samples_) sample = static_cast<std::uint8_t>(random());
  }

  void entropy() { decode_blocks(photos_.files, decoder_); }
  void entropy_by_index() { decode_indexed_blocks(photos_.files, decoder_); }

  void unpack() {
    each_group(photos_.packed, [&](const kernels::packed::Group& group, const PackedPhoto&) {
      unpacker_.unpack(group, 0, group.blocks, blocks_);
    });
  }
  void fused() { transform(fused_); }
  void apart() { transform(apart_); }

  // Rows of 4:2:0: two of chroma a row of pixels.
  void chroma() {
    std::int16_t sums[kRow];
    for (int y = 0; y < kCrop.height * kRepeats; ++y) {
      for (int plane = 0; plane < 2; ++plane) {
        pixel_rows_.blend(sample_row(y), sample_row(y + 1), kCrop.width / 2, sums + kSlack);
        pixel_rows_.widen_sums(sums + kSlack, kCrop.width / 2, pixels_);
      }
    }
  }
  void colour() {
    for (int y = 0; y < kCrop.height * kRepeats; ++y)
      pixel_rows_.to_rgb(sample_row(y), sample_row(y + 1), sample_row(y + 2), kCrop.width, pixels_);
  }
  void across() {
    for (int y = 0; y < kCrop.height / kernels::kQuadRows * kRepeats; ++y) {
      const std::uint8_t* const rows[] = {sample_row(y), sample_row(y + 1), sample_row(y + 2), sample_row(y + 3)};
      rows_.horizontal(*plan_.columns, rows, quad_.front().bytes);
    }
  }
  void down() {
    const std::vector<const std::uint8_t*> quads(static_cast<std::size_t>(plan_.rows->quads) + 1, quad_.front().bytes);
    for (int y = 0; y < kTo.height * kRepeats; ++y)
      rows_.vertical(*plan_.rows, y % kTo.height, quads.data(), 3 * kTo.width, pixels_);
  }
  template <kernels::DType kDtype>
  void store() {
    static const kernels::StoreTable kTable(
        {.dtype = kDtype,
         .layout = kernels::Layout::kNchw,
         .normalise = kernels::Normalise{{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}}});
    tensor_.resize(kTable.image_bytes(kTo));
    for (int i = 0; i < kRepeats; ++i) {
      kernels::ImageStore store(kTable, tensor_, kTo, 3, kernels::Flip::kNone, workspace_);
      for (int y = 0; y < kTo.height; ++y) store(y, sample_row(y));
    }
  }

  void first(std::uint32_t round) { make(photos_.files, round, plain_); }
  void indexed(std::uint32_t round) { make(photos_.files, round, indexed_); }
  void packed(std::uint32_t round) { make(photos_.forms, round, plain_); }

 private:
  static constexpr int kSlack = 64, kRow = 3 * 512;

  const std::uint8_t* sample_row(int y) const { return samples_ + kSlack + y % 8 * kRow; }

  void transform(const kernels::jpeg::PackedDct& dct) {
    each_group(photos_.packed, [&](const kernels::packed::Group& group, const PackedPhoto& photo) {
      const kernels::jpeg::PackedRun run{.group = group,
                                         .first = 0,
                                         .count = group.blocks,
                                         .dequantiser = &photo.dequantisers[0],
                                         .out = out_,
                                         .stride = kOutStride};
      if (!dct.transform(run, Precision::kExact)) broken("a photograph's blocks are out of the ordinary");
    });
  }

  void make(std::vector<Photo>& photos, std::uint32_t round, ImageWorkspace& workspace) {
    tensor_.resize(image_bytes(recipe_, kOutput).count);
    make_tensors(photos, recipe_, draw(photos, recipe_, round), tensor_, workspace);
  }

  static constexpr std::ptrdiff_t kOutStride = kernels::jpeg::kBlock * kernels::packed::kGroupBlocks + 64;

  Photos& photos_;
  kernels::jpeg::Decoder decoder_;
  kernels::Workspace workspace_;
  ImageWorkspace plain_, indexed_;
  kernels::jpeg::PackedDct fused_, apart_;
  const kernels::packed::Unpacker& unpacker_;
  const kernels::jpeg::PixelRowKernels& pixel_rows_;
  const kernels::RowKernels& rows_;
  kernels::ResamplePlan plan_;
  std::vector<kernels::Line> quad_;
  const Recipe recipe_ = train_recipe();
  std::vector<std::byte> tensor_;
  alignas(64) std::int16_t blocks_[kernels::packed::kGroupBlocks * kernels::jpeg::kCoefficients];
  std::uint8_t samples_[8 * kRow + 2 * kSlack];
  std::uint8_t pixels_[kRow + 2 * kSlack];
  std::uint8_t out_[kernels::jpeg::kBlock * kOutStride];
};

// A stage, and what of it a round has.
struct Stage {
  const char* name;
  const char* unit;
  const char* note;
  double count;
  std::function<void(Stages&, std::uint32_t round)> run;
};

std::vector<Stage> stages_of(const Photos& photos) {
  const double blocks = photos.blocks, images = static_cast<double>(photos.files.size());
  const double source = static_cast<double>(kCrop.width) * kCrop.height * kRepeats;
  const double output = static_cast<double>(kTo.width) * kTo.height * kRepeats;
  return {
      {"entropy.first", "ns/block", "all blocks, from the start", blocks, [](Stages& s, auto) { s.entropy(); }},
      {"entropy.index", "ns/block", "all blocks, by a seek index", blocks,
       [](Stages& s, auto) { s.entropy_by_index(); }},
      {"unpack", "ns/block", "packed images to blocks", blocks, [](Stages& s, auto) { s.unpack(); }},
      {"unpack_and_dct.apart", "ns/block", "to samples, blocks written in between", blocks,
       [](Stages& s, auto) { s.apart(); }},
      {"unpack_and_dct", "ns/block", "to samples, as packed images are", blocks, [](Stages& s, auto) { s.fused(); }},
      {"chroma", "ns/pixel", "4:2:0 to full size", source, [](Stages& s, auto) { s.chroma(); }},
      {"colour", "ns/pixel", "to RGB", source, [](Stages& s, auto) { s.colour(); }},
      {"across", "ns/pixel", "352x272 to 224 columns, a pixel of the source", source,
       [](Stages& s, auto) { s.across(); }},
      {"down", "ns/pixel", "to 224 rows, a pixel of the output", output, [](Stages& s, auto) { s.down(); }},
      {"store.float16", "ns/pixel", "normalised NCHW", output,
       [](Stages& s, auto) { s.store<kernels::DType::kFloat16>(); }},
      {"store.float32", "ns/pixel", "normalised NCHW", output,
       [](Stages& s, auto) { s.store<kernels::DType::kFloat32>(); }},
      {"whole.first", "us/image", "train.exact, first touch", 1000 * images,
       [](Stages& s, auto round) { s.first(round); }},
      {"whole.index", "us/image", "by a seek index", 1000 * images, [](Stages& s, auto round) { s.indexed(round); }},
      {"whole.packed", "us/image", "from packed forms", 1000 * images, [](Stages& s, auto round) { s.packed(round); }},
  };
}

}  // namespace

void run_stages(const BenchOptions& options, const Report& report) {
  Photos photos = photos_for_stages(options);
  Counters counters;
  ImageCache cache({.memory = 1_GiB, .disk = Bytes{0}, .state_dir = ""}, counters);
  PixelBuffer buffer;
  kernels::jpeg::Decoder decoder;
  index_all(photos.files, cache, buffer, decoder);
  const std::vector<Target> targets = kernels::available_targets();
  std::deque<Stages> with;
  for (const Target target : targets) with.emplace_back(target, photos, cache);
  const std::vector<Stage> stages = stages_of(photos);
  const std::uint32_t rounds = rounds_of(options);
  std::vector<std::vector<double>> taken(stages.size() * targets.size());
  for (std::uint32_t round = 0; round <= rounds; ++round) {
    for (std::size_t i = 0; i < taken.size(); ++i) {
      const Stage& stage = stages[i / targets.size()];
      const double ns = 1e9 * seconds([&] { stage.run(with[i % targets.size()], round); });
      if (round > 0) taken[i].push_back(ns / stage.count);
    }
  }
  for (std::size_t i = 0; i < taken.size(); ++i) {
    const Stage& stage = stages[i / targets.size()];
    report.add(
        {.name = "engine." + std::string(stage.name) + "." + std::string(kernels::name_of(targets[i % targets.size()])),
         .value = median(taken[i]),
         .unit = stage.unit,
         .rounds = rounds,
         .baseline = {},
         .note = stage.note});
  }
}

}  // namespace millrace::bench
