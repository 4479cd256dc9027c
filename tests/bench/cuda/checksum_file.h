// What tensors the CPU makes of a folder of images: a text file, written where the whole project is built
// (millrace_cuda_checksums) and read where there is a GPU. A line a tensor:
//
//   line     = recipe " " left " " top " " width " " height " " flip " " sum " " path
//   recipe   = a name of recipes.h
//   flip     = "0" | "1"
//   sum      = 16 hexadecimal digits: FNV-1a of the tensor's bytes; or "-": the CPU's decoder refuses the image, or
//              warns of it within the crop
//   path     = from the folder, to the line's end
//
// Values; thread-safe: plain functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tests/bench/cuda/recipes.h"

namespace millrace::kernels::cuda::bench {

struct ChecksumLine {
  const NamedRecipe* recipe = nullptr;
  Box crop;
  Flip flip = Flip::kNone;
  std::optional<std::uint64_t> sum;
  std::string path;
};

// 64 bits, offset basis 0xcbf29ce484222325, prime 0x100000001b3.
std::uint64_t fnv1a(std::span<const std::byte> bytes);

void write_line(std::ostream& out, const ChecksumLine& line);
// nullopt: a line is not of this form, or names a recipe that is not there; `wrong` says which.
std::optional<std::vector<ChecksumLine>> read_lines(std::istream& in, std::string& wrong);

}  // namespace millrace::kernels::cuda::bench
