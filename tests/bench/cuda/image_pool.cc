#include "tests/bench/cuda/image_pool.h"

#include <chrono>
#include <cstring>

#include "kernels/cpu/jpeg/decoder.h"

namespace millrace::kernels::cuda::bench {
namespace {

constexpr std::size_t kPoolAlignment = 16;

std::vector<std::uint8_t> make_index(const jpeg::Header& header, jpeg::Decoder& decoder) {
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(header.size.width) * header.size.height *
                                   header.components);
  const MutableU8View out{pixels.data(), header.size.width, header.size.height, header.components,
                          std::ptrdiff_t{header.size.width} * header.components};
  jpeg::Seeking seeking{.owner = ImagePool::kIndexOwner};
  decoder.decode(header, whole(header.size), out, std::chrono::steady_clock::time_point::max(), &seeking);
  return std::move(seeking.made);
}

}  // namespace

ImagePool::ImagePool(const std::vector<ImageFile>& files, std::size_t images) {
  jpeg::Decoder decoder;
  std::vector<const ImageFile*> usable;
  std::vector<Size> sizes;
  for (const ImageFile& file : files) {
    const auto header = jpeg::read_header(file.bytes);
    if (!header) continue;
    usable.push_back(&file);
    sizes.push_back(header->size);
    indexes_.push_back(make_index(*header, decoder));
  }
  if (usable.empty()) throw std::runtime_error("the folder has no baseline JPEG images");
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < images; ++i) {
    const std::size_t which = i % usable.size(), size = usable[which]->bytes.size();
    images_.push_back({bytes, size, sizes[which], &indexes_[which]});
    bytes += (size + kPoolAlignment - 1) / kPoolAlignment * kPoolAlignment;
  }
  memory_.reserve(bytes);
  for (std::size_t i = 0; i < images; ++i)
    std::memcpy(memory_.data() + images_[i].at, usable[i % usable.size()]->bytes.data(), images_[i].bytes);
}

}  // namespace millrace::kernels::cuda::bench
