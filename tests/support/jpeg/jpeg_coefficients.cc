#include "tests/support/jpeg/jpeg_coefficients.h"

#include <algorithm>
#include <csetjmp>
#include <cstdio>  // before jpeglib.h, which needs FILE

#include <jpeglib.h>

namespace millrace {
namespace {

// Position in zig-zag order to position in natural order, by walking the diagonals (T.81 figure A.6).
std::array<std::uint8_t, 64> make_natural() {
  std::array<std::uint8_t, 64> natural{};
  int x = 0, y = 0;
  for (std::uint8_t& at : natural) {
    at = static_cast<std::uint8_t>(8 * y + x);
    const bool up = (x + y) % 2 == 0;
    if (up && x < 7 && y > 0) {
      ++x, --y;
    } else if (up) {
      x < 7 ? ++x : ++y;
    } else if (y < 7 && x > 0) {
      --x, ++y;
    } else {
      y < 7 ? ++y : ++x;
    }
  }
  return natural;
}

// libjpeg reports errors by longjmp: what has a destructor belongs to the caller.
struct Reading {
  jpeg_decompress_struct jpeg;
  jpeg_error_mgr errors;
  std::jmp_buf on_error;
};

void fail(j_common_ptr jpeg) {
  std::longjmp(static_cast<Reading*>(jpeg->client_data)->on_error, 1);
}

void count(j_common_ptr jpeg, int level) {
  if (level < 0) ++jpeg->err->num_warnings;
}

void copy_plane(jpeg_decompress_struct& jpeg, int index, jvirt_barray_ptr array, JpegPlane& plane) {
  const jpeg_component_info& component = jpeg.comp_info[index];
  plane.h = component.h_samp_factor;
  plane.v = component.v_samp_factor;
  const bool alone = jpeg.num_components == 1;
  const auto filled_up = [&](JDIMENSION blocks, int factor) {
    const auto by = static_cast<std::size_t>(alone ? 1 : factor);
    return (blocks + by - 1) / by * by;
  };
  plane.across = filled_up(component.width_in_blocks, plane.h);
  plane.down = filled_up(component.height_in_blocks, plane.v);
  std::copy_n(component.quant_table->quantval, 64, plane.quant.begin());
  plane.blocks.resize(plane.across * plane.down);
  auto* block = plane.blocks.data();
  for (std::size_t y = 0; y < plane.down; ++y) {
    JBLOCKARRAY rows = jpeg.mem->access_virt_barray(reinterpret_cast<j_common_ptr>(&jpeg), array,
                                                    static_cast<JDIMENSION>(y), 1, FALSE);
    for (std::size_t x = 0; x < plane.across; ++x, ++block) std::copy_n(rows[0][x], 64, block->begin());
  }
}

void copy(jpeg_decompress_struct& jpeg, jvirt_barray_ptr* arrays, JpegCoefficients& result) {
  result.width = static_cast<int>(jpeg.image_width);
  result.height = static_cast<int>(jpeg.image_height);
  result.is_grey = jpeg.jpeg_color_space == JCS_GRAYSCALE;
  result.is_ycc = jpeg.jpeg_color_space == JCS_YCbCr;
  result.planes.resize(static_cast<std::size_t>(jpeg.num_components));
  for (int i = 0; i < jpeg.num_components; ++i)
    copy_plane(jpeg, i, arrays[i], result.planes[static_cast<std::size_t>(i)]);
  result.warnings = jpeg.err->num_warnings;
}

bool read_coefficients(Reading& reading, std::span<const std::byte> file, JpegCoefficients& result) {
  if (setjmp(reading.on_error) != 0) return false;
  jpeg_create_decompress(&reading.jpeg);
  jpeg_mem_src(&reading.jpeg, reinterpret_cast<const unsigned char*>(file.data()),
               static_cast<unsigned long>(file.size()));
  jpeg_read_header(&reading.jpeg, TRUE);
  result.header_warnings = reading.errors.num_warnings;
  result.restart_interval = reading.jpeg.restart_interval;  // what stands behind the scan's data changes it
  copy(reading.jpeg, jpeg_read_coefficients(&reading.jpeg), result);
  return true;
}

}  // namespace

std::optional<JpegCoefficients> read_jpeg_coefficients(std::span<const std::byte> file_untrusted) {
  Reading reading{};
  reading.jpeg.err = jpeg_std_error(&reading.errors);
  reading.jpeg.client_data = &reading;
  reading.errors.error_exit = fail;
  reading.errors.emit_message = count;
  JpegCoefficients result;
  const bool done = read_coefficients(reading, file_untrusted, result);
  jpeg_destroy_decompress(&reading.jpeg);
  if (!done) return std::nullopt;
  return result;
}

std::vector<JpegBlock> in_scan_order(const JpegCoefficients& coefficients) {
  static const std::array<std::uint8_t, 64> kNatural = make_natural();
  const auto& planes = coefficients.planes;
  const bool alone = planes.size() == 1;
  const auto h_of = [&](const JpegPlane& plane) { return static_cast<std::size_t>(alone ? 1 : plane.h); };
  const auto v_of = [&](const JpegPlane& plane) { return static_cast<std::size_t>(alone ? 1 : plane.v); };
  const std::size_t across = planes[0].across / h_of(planes[0]), mcus = across * planes[0].down / v_of(planes[0]);
  std::vector<JpegBlock> result;
  std::vector<int> levels(planes.size());
  for (std::size_t mcu = 0; mcu < mcus; ++mcu) {
    const bool restarts = coefficients.restart_interval > 0 && mcu % coefficients.restart_interval == 0;
    if (restarts) std::fill(levels.begin(), levels.end(), 0);
    for (std::size_t i = 0; i < planes.size(); ++i) {
      const JpegPlane& plane = planes[i];
      for (std::size_t part = 0; part < h_of(plane) * v_of(plane); ++part) {
        const std::size_t x = mcu % across * h_of(plane) + part % h_of(plane);
        const std::size_t y = mcu / across * v_of(plane) + part / h_of(plane);
        const JpegBlock& block = plane.blocks[y * plane.across + x];
        JpegBlock& coded = result.emplace_back();
        for (std::size_t k = 0; k < coded.size(); ++k) coded[k] = block[kNatural[k]];
        coded[0] = static_cast<std::int16_t>(block[0] - levels[i]);
        levels[i] = block[0];
      }
    }
  }
  return result;
}

}  // namespace millrace
