#include "kernels/mrp/restore.h"

#include <algorithm>

namespace millrace::kernels::mrp {
namespace {

constexpr const char* kContradiction = "its JPEG header and its packed image do not belong together";

}  // namespace

std::string Restorer::restore(FileBytes file_untrusted, std::vector<std::uint8_t>& jpeg) {
  PackedFile file;
  if (std::string wrong = read_packed_file(file_untrusted, file); !wrong.empty()) return wrong;
  if (file.way_back == WayBack::kNo) return "only its pixels were kept, not the JPEG file";
  if (!image_.read(file.image, packed::Check::kChecksum)) return "its packed image is damaged";
  const auto header = jpeg::read_header(file.front);
  if (!header || packed::grid_of(*header) != image_.grid()) return kContradiction;
  jpeg.assign(file.front.begin(), file.front.end());
  const jpeg::ScanPadding padding{file.padding, {file.listed.begin(), file.listed.end()}};
  if (!write_scan(*header, padding, jpeg)) return kContradiction;
  jpeg.insert(jpeg.end(), file.end.begin(), file.end.end());
  if (jpeg.size() != file.jpeg_bytes || hash_of(jpeg) != file.jpeg_hash)
    return "what it becomes is not the JPEG file that it was made from";
  return "";
}

bool Restorer::write_scan(const jpeg::Header& header, const jpeg::ScanPadding& padding,
                          std::vector<std::uint8_t>& jpeg) {
  const packed::Grid& grid = image_.grid();
  for (int i = 0; i < grid.components; ++i)
    planes_[static_cast<std::size_t>(i)].resize(static_cast<std::size_t>(grid.across(i)) *
                                                static_cast<std::size_t>(grid.down(i)));
  bool good = writer_.begin(header, padding, jpeg);
  for (int line = 0; good && line < grid.rows; ++line) {
    unpack_line(line);
    good = write_line();
  }
  return good && writer_.finish();
}

void Restorer::unpack_line(int line) {
  const packed::Grid& grid = image_.grid();
  for (int component = 0; component < grid.components; ++component) {
    Block* const blocks = planes_[static_cast<std::size_t>(component)].data();
    const int across = grid.across(component);
    for (int row = 0; row < grid.down(component); ++row) {
      for (int column = 0; column < across; column += packed::kGroupBlocks) {
        const packed::Group group = image_.group(grid.group_of(line, component, row, column));
        const int count = std::min(group.blocks, across - column);
        unpacker_.unpack(group, 0, count, blocks[row * across + column].values.data());
      }
    }
  }
}

// MCU by MCU, as T.81 A.2.3 has them.
bool Restorer::write_line() {
  const packed::Grid& grid = image_.grid();
  for (int mcu = 0; mcu < grid.columns; ++mcu) {
    for (int component = 0; component < grid.components; ++component) {
      const Block* const blocks = planes_[static_cast<std::size_t>(component)].data();
      const int across = grid.across(component), wide = component == 0 ? grid.h : 1;
      for (int row = 0; row < grid.down(component); ++row) {
        for (int column = mcu * wide; column < (mcu + 1) * wide; ++column) {
          if (!writer_.take(blocks[row * across + column].values.data(), 1)) return false;
        }
      }
    }
  }
  return true;
}

}  // namespace millrace::kernels::mrp
