// Writes the file of checksums that tests/bench/cuda compares GPUs with: every image of a folder, every recipe, crops
// drawn from a fixed seed, decoded by libjpeg-turbo and finished by the CPU's kernels.
//
//   millrace_cuda_checksums FOLDER FILE [PACKED]
//
// PACKED: a folder, made anew, for the packed forms of the files, each under its file's name.
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "daemon/backend/cpu/decoders/jpeg/jpeg_decoder.h"
#include "daemon/backend/cpu/making/pack_jpeg.h"
#include "kernels/cpu/resample.h"
#include "kernels/cpu/store.h"
#include "kernels/cpu/workspace.h"
#include "tests/bench/cuda/checksum_file.h"
#include "tests/bench/cuda/image_files.h"
#include "tests/support/pictures/stored_size.h"

namespace millrace {
namespace {

using namespace kernels;
using cuda::bench::ChecksumLine;
using cuda::bench::ImageFile;

ByteView view_of(const ImageFile& file) {
  return {reinterpret_cast<const std::byte*>(file.bytes.data()), file.bytes.size()};
}

std::uint64_t checksum(const U8View& pixels, const ChecksumLine& line, Workspace& workspace) {
  const cuda::BatchRecipe& recipe = line.recipe->recipe;
  const StoreTable table(recipe.store);
  std::vector<std::byte> tensor(table.image_bytes(recipe.size));
  ImageStore store(table, tensor, recipe.size, pixels.channels, line.flip, workspace);
  const ResamplePlan plan = workspace.plan({.channels = pixels.channels,
                                            .source = pixels.size(),
                                            .target = recipe.size,
                                            .window = whole(recipe.size),
                                            .filter = recipe.filter,
                                            .order = recipe.order});
  resample(plan, pixels, workspace, store);
  return cuda::bench::fnv1a(tensor);
}

// A line for each recipe; none where not even a size is to be found.
void write_image(const ImageFile& file, std::mt19937& random, Workspace& workspace, std::ostream& out) {
  const auto size = stored_size(view_of(file));
  if (!size) return;
  for (const auto& recipe : cuda::bench::kRecipes) {
    ChecksumLine line{&recipe, cuda::bench::random_resized_crop(*size, random),
                      random() % 2 == 0 ? Flip::kNone : Flip::kHorizontal, std::nullopt, file.path};
    PixelBuffer buffer;
    const auto decoded = decode_jpeg({view_of(file), *size, line.crop, Clock::now() + std::chrono::minutes(1)}, buffer);
    if (decoded) line.sum = checksum(*decoded, line, workspace);
    cuda::bench::write_line(out, line);
  }
}

// Nothing where there is no packed form of it.
void write_packed(const ImageFile& file, const std::filesystem::path& folder) {
  static kernels::jpeg::Decoder decoder;
  static packed::Encoder encoder;
  DecodingInLane libraries;
  const auto size = stored_size(view_of(file));
  if (!size) return;
  const SourceInfo info{ImageFormat::kJpeg,
                        {static_cast<std::uint32_t>(size->width), static_cast<std::uint32_t>(size->height)}};
  const auto packed =
      pack_jpeg(view_of(file), info, {}, 0, decoder, encoder, Clock::now() + std::chrono::minutes(1), libraries, 0);
  if (!packed) return;
  std::filesystem::create_directories((folder / file.path).parent_path());
  std::ofstream(folder / file.path, std::ios::binary)
      .write(reinterpret_cast<const char*>(packed->data()), static_cast<std::streamsize>(packed->size()))
      .flush();
}

int run(const std::string& folder, const std::string& path, const std::string& packed) {
  std::ofstream out(path);
  std::mt19937 random(1);
  Workspace workspace;
  for (const ImageFile& file : cuda::bench::read_files(folder)) {
    write_image(file, random, workspace, out);
    if (!packed.empty()) write_packed(file, packed);
  }
  out.flush();
  if (out) return EXIT_SUCCESS;
  std::cerr << "cannot write " << path << '\n';
  return EXIT_FAILURE;
}

}  // namespace
}  // namespace millrace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) {
    std::cerr << "usage: millrace_cuda_checksums FOLDER FILE [PACKED]\n";
    return 2;
  }
  try {
    return millrace::run(argv[1], argv[2], argc == 4 ? argv[3] : "");
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return EXIT_FAILURE;
  }
}
