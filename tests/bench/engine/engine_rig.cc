#include "tests/bench/engine/engine_rig.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "daemon/backend/cpu/decoders/jpeg/jpeg_choice.h"
#include "daemon/backend/cpu/decoders/jpeg/jpeg_decoder.h"
#include "daemon/backend/cpu/making/pack_jpeg.h"
#include "daemon/cache/index_use.h"
#include "daemon/formats/probe.h"
#include "daemon/plan/draw_geometry.h"

namespace millrace::bench {
namespace {

using kernels::jpeg::Decoder;

EncodedBytes read_whole(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EncodedBytes bytes(text.size());
  if (!text.empty()) std::memcpy(bytes.writable().data(), text.data(), text.size());
  return bytes;
}

kernels::Size stored(const Photo& photo) {
  return photo.header.size;
}

}  // namespace

void broken(const std::string& why) {
  std::fprintf(stderr, "millrace_bench: engine: %s\n", why.c_str());
  std::exit(1);
}

DecodeRequest whole_request(const Photo& photo) {
  const kernels::Size size = stored(photo);
  return {photo.image.bytes.view(), size, {0, 0, size.width, size.height}, Clock::now() + std::chrono::hours(1)};
}

kernels::jpeg::Header read_header(const Photo& photo) {
  const ByteView bytes = photo.image.bytes.view();
  return *kernels::jpeg::read_header({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
}

Pixels pixels_of(const Photo& photo) {
  PixelBuffer buffer;
  const Result<kernels::U8View> view = decode_jpeg(whole_request(photo), buffer);
  if (!view) broken(view.error().message);
  Pixels pixels{static_cast<std::uint32_t>(view->width), static_cast<std::uint32_t>(view->height), 3, {}};
  pixels.data.resize(std::size_t{pixels.width} * pixels.height * 3);
  for (int y = 0; y < view->height; ++y)
    std::memcpy(pixels.data.data() + std::size_t{pixels.width} * 3 * static_cast<std::size_t>(y), view->row(y),
                std::size_t{pixels.width} * 3);
  return pixels;
}

namespace {

std::vector<std::uint8_t> index_of(const Photo& photo, Decoder& decoder) {
  const auto [width, height] = stored(photo);
  const int channels = photo.header.components;
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(width) * height * channels);
  kernels::jpeg::Seeking seeking;
  decoder.decode(read_header(photo), {0, 0, width, height},
                 {pixels.data(), width, height, channels, std::ptrdiff_t{width} * channels}, Clock::time_point::max(),
                 &seeking);
  return seeking.made;
}

}  // namespace

std::vector<Photo> load_photos(const std::string& folder, std::size_t& files) {
  std::vector<Photo> photos;
  int others = 0;
  PixelBuffer buffer;
  Decoder decoder;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    EncodedBytes bytes = read_whole(entry.path());
    const Result<SourceInfo> info = probe_image(bytes.view(), SampleLimits{}, UseOrientation::kYes);
    const auto* const data = reinterpret_cast<const std::uint8_t*>(bytes.view().data());
    const auto header = kernels::jpeg::read_header({data, bytes.size()});
    if (!info || !header) {
      ++others;
      continue;
    }
    photos.push_back({EncodedImage{std::move(bytes), *info}, *header});
    photos.back().header.scan = {};  // the bytes may have moved
    if (decode_jpeg_fast(whole_request(photos.back()), buffer, decoder)) {
      photos.back().index = index_of(photos.back(), decoder);
      continue;
    }
    photos.pop_back();
    ++others;
  }
  files = photos.size() + static_cast<std::size_t>(others);
  if (photos.empty()) broken("no JPEG file in " + folder + " is for our decoder");
  return photos;
}

namespace {

// Takes blocks as the head of an inverse DCT would: looks at them, zeroes them.
class Consumer : public kernels::jpeg::SeekConsumer {
 public:
  explicit Consumer(const kernels::jpeg::SeekGrid& grid)
      : in_mcu_(grid.blocks_in_mcu), luma_(std::max(1, in_mcu_ - 2)) {}
  bool take(std::int16_t* blocks, std::int64_t count) override {
    for (std::int64_t i = 0; i < count; ++i, at_ = at_ + 1 == in_mcu_ ? 0 : at_ + 1)
      predictors_[static_cast<std::size_t>(std::max(0, at_ - luma_ + 1))] += blocks[i * kernels::jpeg::kCoefficients];
    std::memset(blocks, 0, static_cast<std::size_t>(count) * kernels::jpeg::kBlockBytes);
    return true;
  }
  bool seek(int, int, const kernels::jpeg::DcPredictors& predictors) override {
    predictors_ = predictors;
    return true;
  }
  kernels::jpeg::DcPredictors predictors() const override { return predictors_; }
  void note_levels(std::int16_t*) override {}

 private:
  int in_mcu_, luma_, at_ = 0;
  kernels::jpeg::DcPredictors predictors_{};
};

}  // namespace

void decode_blocks(const std::vector<Photo>& photos, Decoder& decoder) {
  for (const Photo& photo : photos) {
    const kernels::jpeg::Header header = read_header(photo);
    const kernels::jpeg::SeekGrid grid = kernels::jpeg::seek_grid(header);
    Consumer consumer(grid);
    const std::int64_t blocks = grid.mcus() * grid.blocks_in_mcu;
    if (decoder.decode_blocks(header, blocks, blocks, consumer) != kernels::jpeg::Outcome::kDecoded)
      broken("a photograph was not decoded");
  }
}

void decode_indexed_blocks(const std::vector<Photo>& photos, Decoder& decoder) {
  kernels::jpeg::SeekIndex index;
  for (const Photo& photo : photos) {
    const kernels::jpeg::Header header = read_header(photo);
    if (!index.read(photo.index, header, 0)) broken("a photograph has no index");
    const kernels::jpeg::SeekGrid& grid = index.grid();
    Consumer consumer(grid);
    const auto outcome = decoder.decode_blocks(header, index, {{0, grid.rows}, {0, grid.columns}}, consumer);
    if (outcome != kernels::jpeg::Outcome::kDecoded) broken("a photograph was not decoded by its index");
  }
}

void index_all(std::vector<Photo>& photos, ImageCache& cache, PixelBuffer& buffer, Decoder& decoder) {
  for (std::size_t i = 0; i < photos.size(); ++i) {
    EncodedImage& image = photos[i].image;
    image.identity = FileIdentity{.device = 1, .inode = i, .size = image.bytes.size()};
    bool helped = false;
    IndexUse use(cache, image, true, helped);
    DecodeRequest request = whole_request(photos[i]);
    request.index = &use;
    if (!decode_jpeg_fast(request, buffer, decoder)) broken("a photograph was not decoded");
  }
}

std::vector<Photo> packed_photos(const std::vector<Photo>& photos) {
  kernels::jpeg::Decoder decoder;
  kernels::packed::Encoder encoder;
  std::vector<Photo> made;
  DecodingInLane libraries;
  for (const Photo& photo : photos) {
    const auto packed = pack_jpeg(photo.image.bytes.view(), photo.image.info, {}, 0, decoder, encoder,
                                  Clock::now() + std::chrono::hours(1), libraries, 0);
    if (!packed) broken(packed.error().message);
    EncodedImage image{.bytes = {}, .info = photo.image.info};
    const ByteView bytes{reinterpret_cast<const std::byte*>(packed->data()), packed->size()};
    image.kept = CachedForm{CachedKind::kPacked, CachedBlock::copy_of(bytes, CachedBlock::kPadding)};
    made.push_back({std::move(image), photo.header});
  }
  return made;
}

Recipe train_recipe() {
  Recipe recipe;
  recipe.crop = RandomResizedCrop{};
  recipe.resize = ExactSize{kOutput};
  recipe.flip_probability = 0.5F;
  recipe.dtype = DType::kFloat16;
  recipe.range = ValueRange::kUnit;
  recipe.normalise = Normalise{{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};
  return recipe;
}

Recipe infer_recipe() {
  Recipe recipe = train_recipe();
  recipe.crop = {};
  recipe.resize = ShorterSide{256};
  recipe.centre_crop = kOutput;
  recipe.flip_probability = 0;
  return recipe;
}

std::vector<SampleGeometry> draw(const std::vector<Photo>& photos, const Recipe& recipe, std::uint64_t epoch) {
  std::vector<SampleGeometry> drawn;
  for (const Photo& photo : photos) {
    const RandomKey key{1, epoch, SampleId{drawn.size()}};
    const auto geometry = draw_geometry(recipe, {}, photo.image.info, key, SampleLimits{}.side);
    if (!geometry) broken(geometry.error().message);
    drawn.push_back(*geometry);
  }
  return drawn;
}

void make_tensors(std::span<Photo> photos, const Recipe& recipe, std::span<const SampleGeometry> drawn,
                  std::vector<std::byte>& tensor, ImageWorkspace& workspace, Fidelity fidelity) {
  for (std::size_t i = 0; i < photos.size(); ++i) {
    SampleTask task{0, std::move(photos[i].image), drawn[i], in_host_memory(tensor)};
    const SampleOutcome outcome = make_image(task, recipe, SampleLimits{}, workspace, fidelity);
    photos[i].image = std::move(task.image);
    if (outcome.error) broken(outcome.error->message);
  }
}

double seconds(const std::function<void()>& work) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  };
  const double begin = now();
  work();
  return now() - begin;
}

bool is_asked_for(const std::string& name, const BenchOptions& options) {
  return name.find(options.filter) != std::string::npos;
}

std::uint32_t rounds_of(const BenchOptions& options) {
  return options.quick ? 1 : 15;
}

void add_result(const Contest& contest, const std::vector<double>& ours, const std::vector<double>& theirs,
                const Report& report) {
  const Figure figure{.name = contest.name, .unit = "images/s", .note = contest.note};
  report.add(compared(figure, ours, contest.baseline, theirs));
}

void run(const Contest& contest, std::size_t images, const BenchOptions& options, const Report& report) {
  if (!is_asked_for(contest.name, options)) return;
  const auto count = static_cast<double>(images);
  contest.ours(0);
  contest.theirs(0);
  std::vector<double> ours, theirs;
  for (std::uint32_t round = 0; round < rounds_of(options); ++round) {
    ours.push_back(count / seconds([&] { contest.ours(round); }));
    theirs.push_back(count / seconds([&] { contest.theirs(round); }));
  }
  add_result(contest, ours, theirs, report);
}

}  // namespace millrace::bench
