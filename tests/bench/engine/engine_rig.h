// What the figures of the JPEG engine share: photographs in memory, tensors made of them, and rounds. One thread, whose
// processor time counts. Thread-bound(main).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "daemon/backend/cpu/decoders/decode.h"
#include "daemon/backend/cpu/making/image_maker.h"
#include "daemon/model/bytes/encoded_image.h"
#include "daemon/model/geometry.h"
#include "kernels/cpu/jpeg/decoder.h"
#include "tests/bench/figures.h"
#include "tests/support/pictures/test_images.h"

namespace millrace::bench {

inline constexpr Size kOutput{224, 224};

struct Photo {
  EncodedImage image;
  kernels::jpeg::Header header;     // but for the scan
  std::vector<std::uint8_t> index;  // of the whole image
};

// Ends the program.
[[noreturn]] void broken(const std::string& why);

kernels::jpeg::Header read_header(const Photo& photo);
DecodeRequest whole_request(const Photo& photo);
Pixels pixels_of(const Photo& photo);  // RGB, by libjpeg-turbo

// The photographs that our decoder is for, and how many files they are of in the folder; the others take libjpeg-turbo's
// time on any path.
std::vector<Photo> load_photos(const std::string& folder, std::size_t& files);

// The same photographs without their files.
std::vector<Photo> packed_photos(const std::vector<Photo>& photos);
// Gives each photograph an identity, and the cache an index of all of it.
void index_all(std::vector<Photo>& photos, ImageCache& cache, PixelBuffer& buffer, kernels::jpeg::Decoder& decoder);

// Entropy decoding of all blocks: from the start, and by Photo::index.
void decode_blocks(const std::vector<Photo>& photos, kernels::jpeg::Decoder& decoder);
void decode_indexed_blocks(const std::vector<Photo>& photos, kernels::jpeg::Decoder& decoder);

Recipe train_recipe();  // RandomResizedCrop 224, flip, normalised float16
Recipe infer_recipe();  // the shorter side to 256, of which the middle 224, normalised float16
std::vector<SampleGeometry> draw(const std::vector<Photo>& photos, const Recipe& recipe, std::uint64_t epoch);
// One after the other into `tensor`.
void make_tensors(std::span<Photo> photos, const Recipe& recipe, std::span<const SampleGeometry> drawn,
                  std::vector<std::byte>& tensor, ImageWorkspace& workspace, Fidelity fidelity = Fidelity::kExact);

// Of this thread's processor time: neighbours on a shared machine do not count.
double seconds(const std::function<void()>& work);

struct Contest {
  std::string name;
  std::string baseline;
  std::string note;
  std::function<void(std::uint32_t round)> ours, theirs;
};
bool is_asked_for(const std::string& name, const BenchOptions& options);
std::uint32_t rounds_of(const BenchOptions& options);
// `ours` and `theirs`: images/s, a round each.
void add_result(const Contest& contest, const std::vector<double>& ours, const std::vector<double>& theirs,
                const Report& report);
// Both in turns.
void run(const Contest& contest, std::size_t images, const BenchOptions& options, const Report& report);

}  // namespace millrace::bench
