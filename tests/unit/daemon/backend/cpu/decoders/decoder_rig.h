// What tests of decoders do with each: whole pictures, boxes of them, verdicts.
#pragma once

#include <malloc.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <random>
#include <string>
#include <vector>

#include "daemon/backend/cpu/decoders/decode.h"
#include "daemon/formats/probe.h"
#include "tests/fuzz/fuzz_pixels.h"

namespace millrace {

using DecodeFunction = Result<kernels::U8View> (*)(const DecodeRequest&, PixelBuffer&);
using File = std::vector<std::byte>;

inline File file_of(const std::string& text) {
  const auto* const begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

inline DecodeRequest request_of(const File& file, kernels::Size size, const kernels::Box& box) {
  return {file, size, box, Clock::now() + std::chrono::minutes(5)};
}

// The decoder, asked for indices.
template <DecodeFunction kDecode>
Result<kernels::U8View> indices_by(const DecodeRequest& request, PixelBuffer& buffer) {
  DecodeRequest asked = request;
  asked.indices = true;
  return kDecode(asked, buffer);
}

// The whole picture's samples.
inline std::vector<int> decoded(DecodeFunction decode, const File& file, kernels::Size size, int channels) {
  PixelBuffer buffer;
  const Result<kernels::U8View> all = decode(request_of(file, size, kernels::whole(size)), buffer);
  REQUIRE(all);
  REQUIRE(all->channels == channels);
  REQUIRE(all->size() == size);
  std::vector<int> samples;
  for (int y = 0; y < size.height; ++y)
    samples.insert(samples.end(), all->row(y), all->row(y) + std::ptrdiff_t{size.width} * channels);
  return samples;
}

// Twice, with a heap that is full of different bytes: the pixels, or of a refused file the reason.
inline std::vector<std::string> in_two_heaps(DecodeFunction decode, const File& file, kernels::Size size) {
  std::vector<std::string> made;
  for (const int filling : {17, 201}) {
    mallopt(M_PERTURB, filling);
    PixelBuffer buffer;
    const Result<kernels::U8View> all = decode(request_of(file, size, kernels::whole(size)), buffer);
    mallopt(M_PERTURB, 0);
    std::string text = all ? "" : all.error().message;
    for (int y = 0; all && y < size.height; ++y)
      text.append(reinterpret_cast<const char*>(all->row(y)), static_cast<std::size_t>(size.width * all->channels));
    made.push_back(text);
  }
  return made;
}

inline void check_boxes(DecodeFunction decode, const File& file, kernels::Size size, std::mt19937& random) {
  PixelBuffer whole_buffer, part_buffer;
  const Result<kernels::U8View> all = decode(request_of(file, size, kernels::whole(size)), whole_buffer);
  REQUIRE(all);
  for (int i = 0; i < 40; ++i) {
    std::uint8_t choice[8];
    for (std::uint8_t& byte : choice) byte = static_cast<std::uint8_t>(random());
    const kernels::Box box = any_box_of(choice, size);
    const Result<kernels::U8View> part = decode(request_of(file, size, box), part_buffer);
    CAPTURE(box.left, box.top, box.width, box.height);

    REQUIRE(part);
    REQUIRE(same_pixels(all->crop(box), *part));
  }
}

// Of the probe.
inline std::string refused(const File& file) {
  const Result<SourceInfo> info = probe_image(file, SampleLimits{}, UseOrientation::kYes);
  REQUIRE_FALSE(info);
  REQUIRE(info.error().code == Code::kInvalid);
  return info.error().message;
}

// The same words for the whole picture and for one pixel of it.
inline std::string decoding_refused(DecodeFunction decode, const File& file, kernels::Size size) {
  PixelBuffer buffer;
  const Result<kernels::U8View> all = decode(request_of(file, size, kernels::whole(size)), buffer);
  const Result<kernels::U8View> pixel = decode(request_of(file, size, {0, 0, 1, 1}), buffer);
  REQUIRE_FALSE(all);
  REQUIRE_FALSE(pixel);
  REQUIRE(all.error().code == Code::kInvalid);
  REQUIRE(pixel.error().message == all.error().message);
  return all.error().message;
}

inline Code code_when_late(DecodeFunction decode, const File& file, kernels::Size size) {
  PixelBuffer buffer;
  const Result<kernels::U8View> late = decode({file, size, kernels::whole(size), Clock::now()}, buffer);
  REQUIRE_FALSE(late);
  return late.error().code;
}

}  // namespace millrace
