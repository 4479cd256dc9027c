// What the tests of decoder processes share: the program, files that libraries decode, and one lane's processes.
#pragma once

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "daemon/backend/cpu/isolation/decoder_children.h"
#include "tests/support/pictures/test_images.h"

namespace millrace {

using File = std::vector<std::byte>;

const DecoderProgram& decoder_under_test();
// Another program in its place. Fails the test if it does not start.
DecoderProgram decoder_program_at(const std::string& path);

struct LibraryFile {
  std::string name;
  ImageFormat format;
  kernels::Size size;
  File bytes;
};
// A file of each kind that libraries decode: colours, depths, codings, turned over passes.
std::vector<LibraryFile> library_files(std::uint32_t width, std::uint32_t height);
LibraryFile library_file(const std::string& name, std::uint32_t width, std::uint32_t height);
LibraryFile png_file(std::uint32_t width, std::uint32_t height, std::uint32_t seed = 1);

DecodeRequest whole_of(const LibraryFile& file, std::uint32_t user = 1,
                       Clock::time_point deadline = Clock::now() + std::chrono::minutes(5));

// A lane's processes, and how it goes with one file.
struct LaneOnTheBench {
  Counters counters;
  DecoderChildren children{decoder_under_test(), &counters};
  PixelBuffer buffer;

  Result<kernels::U8View> decode(const LibraryFile& file, const DecodeRequest& request) {
    return children.decode(file.format, request, buffer);
  }
  Result<kernels::U8View> decode(const LibraryFile& file, std::uint32_t user = 1) {
    return decode(file, whole_of(file, user));
  }
};

bool same(const kernels::U8View& a, const kernels::U8View& b);

// The processes of this one, youngest last.
std::vector<pid_t> processes();
// Whose there is only one.
pid_t the_process();
std::size_t open_descriptors();

}  // namespace millrace
