// The baseline of service.efficiency: what a program gets that calls our kernels itself. Reads files, parses headers,
// draws the same boxes and makes the same tensors, with nothing between.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace millrace::bench {

// Images a second of one pass over `files` with RandomResizedCrop 224 and flip 0.5, drawn for epoch `epoch` of seed 1,
// by `threads` threads that take the next file each. Ends the program if a file cannot be made.
double plain_loop(const std::vector<std::string>& files, std::uint32_t threads, std::uint64_t epoch);

// The same from packed forms of the files, made before and in memory; of those that cannot be packed, from their bytes.
class PackedFiles {
 public:
  explicit PackedFiles(const std::vector<std::string>& files);
  ~PackedFiles();
  double loop(std::uint32_t threads, std::uint64_t epoch) const;

 private:
  struct Images;
  std::unique_ptr<Images> images_;
};

}  // namespace millrace::bench
