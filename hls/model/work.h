// What a batch of images asks of a decoder's stages: a picture, a crop, and from these for each MCU and each row of MCUs
// how much there is to do. Values; thread-safe: plain functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hls/model/picture.h"
#include "hls/wire/words.h"

namespace millrace::hls::model {

enum class Recipe : std::uint8_t {
  kTrain,   // RandomResizedCrop(224)
  kCentre,  // shorter side to 256, centre crop of 224
  kWhole,   // all of the picture, made 224 x 224
  kNothing  // all of the picture, its samples
};

struct Crop {
  int left = 0, top = 0, width = 0, height = 0;
};

// The same for equal arguments. `draw`: the how-manieth image.
Crop crop_of(const Picture& picture, Recipe recipe, std::uint64_t seed, std::uint64_t draw);

struct McuWork {
  float bytes = 0;               // of the stored image, for this MCU
  std::uint16_t symbols = 0;     // or, of packed images, values
  std::uint16_t pixels = 0;      // within the crop
  std::uint8_t blocks = 0;       // decoded
  std::uint8_t idct_blocks = 0;  // within the crop; 0: nothing comes out
  bool begins_line = false, ends_line = false, ends_crop = false;
  std::uint16_t line = 0;
};

// A row of MCUs within the crop.
struct LineWork {
  float columns = 0;        // pixels that the columns' filter takes or makes, whichever is more
  float rows = 0;           // the same of the rows' filter
  std::int32_t pixels = 0;  // of the output, that are finished with it
};

struct Job {
  std::vector<McuWork> mcus;  // in the order in which they are decoded
  std::vector<LineWork> lines;
  std::int64_t source_bytes = 0;   // to the card: the image
  std::int64_t command_bytes = 0;  // to the card: descriptor and tables
  std::int64_t pixels = 0;         // of the tensor, or samples where none is made
  std::int64_t table_symbols = 0;
  std::int64_t symbols = 0, blocks = 0, idct_blocks = 0;
};

struct WorkSpec {
  Source source = Source::kJpegScan;
  Recipe recipe = Recipe::kTrain;
  bool whole_scan = true;
  std::uint64_t seed = 1;
};

// REQUIRES: for Source::kPacked, the picture can be packed.
Job job_of(const Picture& picture, const Crop& crop, const WorkSpec& spec);

// `count` images, the pictures over and over.
std::vector<Job> jobs_of(std::span<const Picture> pictures, const WorkSpec& spec, std::size_t count);

}  // namespace millrace::hls::model
