#include "tests/bench/engine/engine.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>  // before jpeglib.h, which needs FILE
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <span>
#include <utility>

#include <jpeglib.h>

#include "daemon/backend/cpu/decoders/jpeg/jpeg_choice.h"
#include "daemon/backend/cpu/decoders/jpeg/jpeg_decoder.h"
#include "daemon/backend/cpu/making/image_maker.h"
#include "daemon/cache/image_cache.h"
#include "daemon/formats/probe.h"
#include "daemon/plan/draw_geometry.h"
#include "tests/bench/engine/engine_rig.h"
#include "tests/bench/engine/transcode.h"

namespace millrace::bench {
namespace {

using kernels::jpeg::Decoder;

// --- entropy decoding ---

void read_coefficients(const std::vector<Photo>& photos) {
  for (const Photo& photo : photos) {
    const ByteView bytes = photo.image.bytes.view();
    jpeg_decompress_struct jpeg{};
    jpeg_error_mgr errors{};
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&jpeg);
    jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
    jpeg_read_header(&jpeg, TRUE);
    jpeg_read_coefficients(&jpeg);
    jpeg_destroy_decompress(&jpeg);
  }
}

// --- pixels ---

void decode_whole(const std::vector<Photo>& photos, PixelBuffer& buffer, Decoder* decoder) {
  for (const Photo& photo : photos) {
    const DecodeRequest request = whole_request(photo);
    if (!(decoder ? decode_jpeg(request, buffer, *decoder) : decode_jpeg(request, buffer)))
      broken("a photograph was not decoded");
  }
}

// --- tensors ---

void forget_all(std::span<const Photo> photos, ImageCache& cache) {
  for (const Photo& photo : photos) cache.forget(key_of(*photo.image.identity, cache.seed()), CachedKind::kIndex);
}

// The photographs with a restart marker behind each row of MCUs.
std::vector<Photo> restarting(const std::vector<Photo>& photos) {
  std::vector<Photo> made;
  for (const Photo& photo : photos) {
    const auto file = with_restarts(photo.image.bytes.view());
    if (!file) broken("a photograph was not transcoded");
    EncodedBytes bytes(file->size());
    std::memcpy(bytes.writable().data(), file->data(), file->size());
    made.push_back({EncodedImage{std::move(bytes), photo.image.info}, photo.header});
    made.back().header.scan = {};
  }
  return made;
}

void run_restarts(const std::vector<Photo>& photos, Decoder& decoder, const BenchOptions& options,
                  const Report& report) {
  const std::string name = "jpeg.entropy.restarts";
  if (!is_asked_for(name, options)) return;
  const std::vector<Photo> restarts = restarting(photos);
  run({name, "libjpeg-turbo, coefficients", "the same blocks, a restart interval a row of MCUs",
       [&](std::uint32_t) { decode_blocks(restarts, decoder); }, [&](std::uint32_t) { read_coefficients(restarts); }},
      restarts.size(), options, report);
}

// First touch as a processor without AVX-512 does it; the other side resamples with AVX2, too.
void run_avx2(std::vector<Photo>& photos, std::vector<std::byte>& tensor, const BenchOptions& options,
              const Report& report) {
  const CpuVariant avx2{.target = kernels::Target::kAvx2};
  const Recipe recipe = train_recipe();
  ImageWorkspace ours(JpegPath::kFastest, avx2), turbo(JpegPath::kLibjpegTurbo, avx2);
  const auto contest = [&](const char* name, const char* note, Fidelity fidelity) {
    const auto make = [&](ImageWorkspace& workspace, Fidelity how) {
      return [&, how](std::uint32_t round) {
        make_tensors(photos, recipe, draw(photos, recipe, round), tensor, workspace, how);
      };
    };
    run({name, "libjpeg-turbo crop and skip, our resampler", note, make(ours, fidelity), make(turbo, Fidelity::kExact)},
        photos.size(), options, report);
  };
  contest("train.exact.first.avx2", "first touch with cpu.target avx2", Fidelity::kExact);
  contest("train.fast.first.avx2", "the same, fidelity fast", Fidelity::kFast);
}

// What making an index costs is little, and where buffers happen to lie makes as much: so both ways take turns on a few
// photographs at a time, enough for a workspace to warm up, with several workspaces and more rounds.
class RecordingContest {
 public:
  RecordingContest(std::vector<Photo>& photos, ImageCache& cache) : photos_(photos), cache_(cache) {
    for (std::size_t i = 0; i < kWorkspaces; ++i) {
      recording_.emplace_back(JpegPath::kFastest, CpuVariant{}, &cache);
      plain_.emplace_back();
    }
  }

  void run(const BenchOptions& options, const Report& report) {
    const Contest contest{"train.exact.recording", "the same without making an index",
                          "first touch, which makes a seek index", nullptr, nullptr};
    if (!is_asked_for(contest.name, options)) return;
    for (std::uint32_t i = 0; i < kWorkspaces; ++i) play(i);
    std::vector<double> ours, theirs;
    for (std::uint32_t round = 0; round < 3 * rounds_of(options); ++round) {
      const auto [with, without] = play(round);
      ours.push_back(static_cast<double>(photos_.size()) / with);
      theirs.push_back(static_cast<double>(photos_.size()) / without);
    }
    add_result(contest, ours, theirs, report);
  }

 private:
  static constexpr std::size_t kAtATime = 32, kWorkspaces = 4;

  // Seconds with and without making an index.
  std::pair<double, double> play(std::uint32_t round) {
    const std::vector<SampleGeometry> drawn = draw(photos_, recipe_, round);
    forget_all(photos_, cache_);
    double with = 0, without = 0;
    for (std::size_t first = 0; first < photos_.size(); first += kAtATime) {
      const std::size_t count = std::min(kAtATime, photos_.size() - first);
      const auto make = [&](ImageWorkspace& workspace) {
        make_tensors(std::span(photos_).subspan(first, count), recipe_, std::span(drawn).subspan(first, count), tensor_,
                     workspace);
      };
      const auto play_recording = [&] { with += seconds([&] { make(recording_[round % kWorkspaces]); }); };
      const auto play_plain = [&] { without += seconds([&] { make(plain_[round % kWorkspaces]); }); };
      const bool recording_first = (round + first / kAtATime) % 2 == 0;  // the first has to bring the files
      if (recording_first) play_recording();
      play_plain();
      if (!recording_first) play_recording();
    }
    return {with, without};
  }

  std::vector<Photo>& photos_;
  ImageCache& cache_;
  const Recipe recipe_ = train_recipe();
  std::vector<std::byte> tensor_ = std::vector<std::byte>(image_bytes(recipe_, kOutput).count);
  std::deque<ImageWorkspace> recording_, plain_;
};

}  // namespace

void run_engine(const BenchOptions& options, const Report& report) {
  std::size_t files = 0;
  std::vector<Photo> photos = load_photos(options.data, files);
  report.add({.name = "jpeg.photographs",
              .value = static_cast<double>(photos.size()),
              .unit = "files",
              .rounds = 1,
              .baseline = {},
              .note = "of " + std::to_string(files) + " in the folder; those that our decoder refuses are left out"});
  Decoder decoder;
  PixelBuffer buffer;
  run({"jpeg.entropy", "libjpeg-turbo, coefficients", "unstuffing and tables included",
       [&](std::uint32_t) { decode_blocks(photos, decoder); }, [&](std::uint32_t) { read_coefficients(photos); }},
      photos.size(), options, report);
  run({"jpeg.entropy.indexed", "libjpeg-turbo, coefficients", "all blocks, by a seek index made before",
       [&](std::uint32_t) { decode_indexed_blocks(photos, decoder); },
       [&](std::uint32_t) { read_coefficients(photos); }},
      photos.size(), options, report);
  run_restarts(photos, decoder, options, report);
  run({"jpeg.decode.exact", "libjpeg-turbo", "whole images to RGB",
       [&](std::uint32_t) { decode_whole(photos, buffer, &decoder); },
       [&](std::uint32_t) { decode_whole(photos, buffer, nullptr); }},
      photos.size(), options, report);
  const Recipe recipe = train_recipe();
  std::vector<std::byte> tensor(image_bytes(recipe, kOutput).count);
  ImageWorkspace fastest, turbo(JpegPath::kLibjpegTurbo);
  run({"train.exact.first", "libjpeg-turbo crop and skip, our resampler",
       "RandomResizedCrop 224, flip, normalised float16",
       [&](std::uint32_t round) { make_tensors(photos, recipe, draw(photos, recipe, round), tensor, fastest); },
       [&](std::uint32_t round) { make_tensors(photos, recipe, draw(photos, recipe, round), tensor, turbo); }},
      photos.size(), options, report);
  Counters counters;
  ImageCache cache({.memory = 1_GiB, .disk = Bytes{0}, .state_dir = ""}, counters);
  index_all(photos, cache, buffer, decoder);
  ImageWorkspace indexed(JpegPath::kFastest, {}, &cache);
  run({"train.exact.indexed", "libjpeg-turbo crop and skip, our resampler", "the same, with a seek index made before",
       [&](std::uint32_t round) { make_tensors(photos, recipe, draw(photos, recipe, round), tensor, indexed); },
       [&](std::uint32_t round) { make_tensors(photos, recipe, draw(photos, recipe, round), tensor, turbo); }},
      photos.size(), options, report);
  run({"train.fast.indexed", "libjpeg-turbo crop and skip, our resampler", "the same, fidelity fast",
       [&](std::uint32_t round) {
         make_tensors(photos, recipe, draw(photos, recipe, round), tensor, indexed, Fidelity::kFast);
       },
       [&](std::uint32_t round) { make_tensors(photos, recipe, draw(photos, recipe, round), tensor, turbo); }},
      photos.size(), options, report);
  RecordingContest(photos, cache).run(options, report);
  run({"train.fast.first", "libjpeg-turbo crop and skip, our resampler", "the same, fidelity fast",
       [&](std::uint32_t round) {
         make_tensors(photos, recipe, draw(photos, recipe, round), tensor, fastest, Fidelity::kFast);
       },
       [&](std::uint32_t round) { make_tensors(photos, recipe, draw(photos, recipe, round), tensor, turbo); }},
      photos.size(), options, report);
  if (kernels::is_available(kernels::Target::kAvx2)) run_avx2(photos, tensor, options, report);
}

}  // namespace millrace::bench
