// Files, recipes and requests for tests of a whole pipeline. Plain functions.
#pragma once

#include <algorithm>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "daemon/model/batch_request.h"
#include "daemon/model/epoch.h"
#include "tests/support/pictures/test_images.h"

namespace millrace {

inline std::shared_ptr<const Recipe> square(std::uint32_t side) {
  Recipe recipe;
  recipe.crop = RandomResizedCrop{};
  recipe.resize = ExactSize{{side, side}};
  recipe.flip_probability = 0.5F;
  recipe.layout = Layout::kNhwc;
  return std::make_shared<Recipe>(recipe);
}

inline void write_bytes(const std::string& path, std::span<const std::byte> bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

// `count` JPEG files of growing size named 000.jpg ...; those in `bad` are text.
inline void write_images(const std::string& folder, std::uint32_t count, std::vector<std::uint32_t> bad = {}) {
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::string path = folder + "/" + std::to_string(1000 + i).substr(1) + ".jpg";
    const bool broken = std::find(bad.begin(), bad.end(), i) != bad.end();
    const std::string text = "this is not an image";
    write_bytes(path, broken ? std::as_bytes(std::span(text))
                             : std::span<const std::byte>(make_jpeg({.pixels = make_pixels(40 + i, 30 + i, 3, i)})));
  }
}

inline BatchRequest request_of(const std::string& folder, std::uint32_t count, std::shared_ptr<const Recipe> recipe) {
  BatchRequest request{.id = BatchId{1}, .recipe = std::move(recipe), .seed = 5};
  for (std::uint32_t i = 0; i < count; ++i) {
    request.samples.push_back(
        SampleRequest{.id = SampleId{i},
                      .label = i,
                      .source = PathSource{folder + "/" + std::to_string(1000 + i).substr(1) + ".jpg"}});
  }
  return request;
}

// A batch of equal images of so many pixels a side, in one session of one user.
inline BatchRequest batch_of(std::uint32_t count, std::size_t side) {
  const std::vector<std::byte> jpeg = make_jpeg({.pixels = make_pixels(side, side, 3, 1)});
  Recipe recipe;
  recipe.resize = ExactSize{{8, 8}};
  BatchRequest request{.id = BatchId{1}, .recipe = std::make_shared<const Recipe>(recipe)};
  for (std::uint32_t i = 0; i < count; ++i) {
    request.samples.push_back(SampleRequest{
        .id = SampleId{i}, .source = InlineSource{{reinterpret_cast<const char*>(jpeg.data()), jpeg.size()}}});
  }
  return request;
}

inline EpochRequest epoch_of(std::shared_ptr<const Dataset> dataset, std::uint32_t batch_size) {
  EpochRequest request{.id = EpochStreamId{3}, .dataset = dataset, .recipe = square(16)};
  request.order = {.samples = dataset->samples(), .seed = 5, .shuffle = Shuffle::kYes, .batch_size = batch_size};
  return request;
}

}  // namespace millrace
