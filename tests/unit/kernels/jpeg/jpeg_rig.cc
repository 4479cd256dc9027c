#include "tests/unit/kernels/jpeg/jpeg_rig.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "daemon/backend/cpu/decoders/jpeg/jpeg_choice.h"
#include "daemon/backend/cpu/decoders/jpeg/jpeg_decoder.h"
#include "tests/support/jpeg/block_collector.h"
#include "tests/support/pictures/every_decoder.h"
#include "tests/support/rounds.h"

namespace millrace {

using kernels::jpeg::Decoder;
using kernels::jpeg::Header;

int below(std::mt19937& random, int bound) {
  return static_cast<int>(random() % static_cast<unsigned>(bound));
}

kernels::Box random_box(std::mt19937& random, kernels::Size size) {
  const int left = below(random, size.width), top = below(random, size.height);
  return {left, top, 1 + below(random, size.width - left), 1 + below(random, size.height - top)};
}

DecodeRequest request_for(ByteView file, kernels::Size size, const kernels::Box& box) {
  return {file, size, box, Clock::now() + std::chrono::minutes(5)};
}

kernels::jpeg::FileBytes file_bytes(ByteView file) {
  return {reinterpret_cast<const std::uint8_t*>(file.data()), file.size()};
}

bool is_plain(const JpegStream& stream) {
  return stream.components.size() == 1 || stream.components[0].h == 1 || stream.width > 4;
}

bool same_pixels(const kernels::U8View& a, const kernels::U8View& b) {
  if (a.size() != b.size() || a.channels != b.channels) return false;
  for (int y = 0; y < a.height; ++y) {
    if (std::memcmp(a.row(y), b.row(y), static_cast<std::size_t>(a.width) * a.channels) != 0) return false;
  }
  return true;
}

bool same_outcome(const Result<kernels::U8View>& a, const Result<kernels::U8View>& b) {
  if (a && b) return same_pixels(*a, *b);
  return !a && !b && a.error().code == b.error().code && a.error().message == b.error().message;
}

std::vector<std::unique_ptr<Decoder>>& decoders() {
  static auto all = every_decoder();
  return all;
}

LibjpegOutcome::LibjpegOutcome(ByteView file, kernels::Size size, const kernels::Box& box)
    : part_(decode_jpeg(request_for(file, size, box), buffer_)), of_whole_(part_) {
  if (part_) return;
  const auto picture = decode_jpeg(request_for(file, size, whole(size)), whole_buffer_);
  if (picture) of_whole_ = picture->crop(box);
}

bool LibjpegOutcome::agrees(const Result<kernels::U8View>& ours) const {
  return same_outcome(part_, ours) || same_outcome(of_whole_, ours);
}

int check_all(ByteView file, kernels::Size size, const kernels::Box& box) {
  const LibjpegOutcome expected(file, size, box);
  PixelBuffer buffer;
  int taken = 0;
  for (const auto& decoder : decoders()) {
    const auto decoded = decode_jpeg_fast(request_for(file, size, box), buffer, *decoder);
    if (!decoded) continue;
    ++taken;
    CAPTURE(size.width, size.height, box.left, box.top, box.width, box.height, taken);
    REQUIRE(expected.agrees(*decoded));
  }
  return taken;
}

std::optional<std::vector<JpegBlock>> decode_blocks(Decoder& decoder, ByteView file, std::optional<std::size_t> count) {
  const auto header = kernels::jpeg::read_header(file_bytes(file));
  if (!header) return std::nullopt;
  const int h = header->component[0].h, v = header->component[0].v;
  const auto mcus = [](int side, int factor) { return (side + 8 * factor - 1) / (8 * factor); };
  const std::int64_t all = std::int64_t{mcus(header->size.width, h)} * mcus(header->size.height, v) *
                           (header->components == 1 ? 1 : h * v + 2);
  BlockCollector collector;
  const auto blocks = count ? static_cast<std::int64_t>(*count) : all;
  if (decoder.decode_blocks(*header, blocks, all, collector) != kernels::jpeg::Outcome::kDecoded) return std::nullopt;
  return std::move(collector.all);
}

std::vector<std::pair<std::string, File>> files_in(const std::string& folder) {
  std::vector<std::pair<std::string, File>> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream stream(entry.path(), std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
    const auto* const bytes = reinterpret_cast<const std::byte*>(text.data());
    files.emplace_back(entry.path().filename(), File(bytes, bytes + text.size()));
  }
  return files;
}

std::vector<std::pair<std::string, File>> some_files_in(const std::string& folder) {
  std::vector<std::pair<std::string, File>> files = files_in(folder);
  std::sort(files.begin(), files.end());
  int large = 0;
  std::erase_if(files, [&](const auto& file) { return file.second.size() > 50'000 && !is_taken(large++); });
  return files;
}

}  // namespace millrace
