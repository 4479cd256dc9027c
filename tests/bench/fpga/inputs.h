// What the model of an FPGA decoder is driven by: the photographs of a folder, and pictures of a given size and file size
// that are put together of such photographs. Thread-safe: plain functions.
#pragma once

#include <string>
#include <vector>

#include "hls/model/calibration.h"
#include "hls/model/picture.h"
#include "tests/support/pictures/test_images.h"

namespace millrace::bench {

// The JPEG files in `folder` and its folders that the model's decoder takes and that can be packed, in the order of their names.
std::vector<hls::model::Picture> read_folder(const std::string& folder);

// The pixels of the photographs in `folder` that are in colour and not small, at most `most`.
std::vector<Pixels> read_pixels(const std::string& folder, std::size_t most);

// A 4:2:0 JPEG of the size of `input`: tiles of 160 x 160 pixels out of the photographs, the `which`-th first, with the
// quality that comes nearest to the size of the file.
hls::model::Picture stand_in(const hls::model::Input& input, const std::vector<Pixels>& photographs, std::size_t which);

}  // namespace millrace::bench
