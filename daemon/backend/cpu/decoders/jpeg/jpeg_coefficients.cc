#include "daemon/backend/cpu/decoders/jpeg/jpeg_coefficients.h"

#include <algorithm>
#include <csetjmp>

#include "daemon/backend/cpu/decoders/jpeg/libjpeg.h"

namespace millrace {
namespace {

using kernels::jpeg::kCoefficients;
using kernels::jpeg::kMostBlocks;
using libjpeg::Decoding;
using libjpeg::fail;
using libjpeg::Failure;

// Chroma at full or half size, where libjpeg smooths it as our decoder does (kernels/jpeg/header.h).
bool is_our_sampling(const jpeg_decompress_struct& jpeg) {
  const jpeg_component_info* const component = jpeg.comp_info;
  if (jpeg.num_components == 1) return jpeg.jpeg_color_space == JCS_GRAYSCALE;
  if (jpeg.num_components != 3 || jpeg.jpeg_color_space != JCS_YCbCr) return false;
  for (int i = 1; i < 3; ++i) {
    if (component[i].h_samp_factor != 1 || component[i].v_samp_factor != 1) return false;
  }
  const int h = component[0].h_samp_factor, v = component[0].v_samp_factor;
  return h <= 2 && v <= 2 && (h == 1 || jpeg.image_width > 4);
}

// Whether all bits of all coefficients have come: libjpeg smooths blocks of other files.
bool is_complete(const jpeg_decompress_struct& jpeg) {
  for (int i = 0; i < jpeg.num_components; ++i) {
    if (jpeg.comp_info[i].quant_table == nullptr) return false;  // no scan had it
    if (!jpeg.progressive_mode) continue;
    const int* const bits = jpeg.coef_bits[i];
    if (std::any_of(bits, bits + kCoefficients, [](int missing) { return missing != 0; })) return false;
  }
  return true;
}

// libjpeg goes by the tables that stood there when a component's first scan began, and has kept them.
kernels::jpeg::Header header_of(const jpeg_decompress_struct& jpeg) {
  kernels::jpeg::Header header;
  header.size = libjpeg::size_of(jpeg);
  header.components = jpeg.num_components;
  for (std::size_t i = 0; i < static_cast<std::size_t>(jpeg.num_components); ++i) {
    const jpeg_component_info& component = jpeg.comp_info[i];
    header.component[i].quant = static_cast<std::uint8_t>(i);
    std::copy_n(component.quant_table->quantval, kCoefficients, header.quant[i].emplace().begin());
    if (jpeg.num_components == 1) continue;  // MCUs of one block, whatever its factors
    header.component[i].h = static_cast<std::uint8_t>(component.h_samp_factor);
    header.component[i].v = static_cast<std::uint8_t>(component.v_samp_factor);
  }
  return header;
}

// One MCU row, whose blocks libjpeg has in rows of each component.
bool pack_row(jpeg_decompress_struct& jpeg, jvirt_barray_ptr* arrays, const kernels::packed::Grid& grid, int line,
              kernels::packed::Encoder& encoder) {
  JBLOCKARRAY rows[3];
  for (int i = 0; i < grid.components; ++i) {
    const auto down = static_cast<JDIMENSION>(grid.down(i));
    rows[i] = jpeg.mem->access_virt_barray(reinterpret_cast<j_common_ptr>(&jpeg), arrays[i],
                                           static_cast<JDIMENSION>(line) * down, down, FALSE);
  }
  std::int16_t mcu[kMostBlocks * kCoefficients];
  for (int column = 0; column < grid.columns; ++column) {
    std::int16_t* to = mcu;
    for (int i = 0; i < grid.components; ++i) {
      const int across = i == 0 ? grid.h : 1;
      for (int block = 0; block < across * grid.down(i); ++block, to += kCoefficients) {
        const JCOEF* const from = rows[i][block / across][column * across + block % across];
        for (std::size_t at = 0; at < kCoefficients; ++at) to[at] = from[kernels::jpeg::kNatural[at]];
      }
    }
    if (!encoder.take(mcu, grid.blocks_in_mcu())) return false;
  }
  return true;
}

// false: decoding.failure says why.
bool try_pack(Decoding& decoding, const DecodeRequest& request, kernels::packed::Encoder& encoder) {
  if (setjmp(decoding.on_failure) != 0) return false;
  jpeg_decompress_struct& jpeg = decoding.jpeg;
  libjpeg::read_header(decoding, request.bytes_untrusted);
  if (libjpeg::size_of(jpeg) != request.stored) fail(decoding, Failure::kSize);
  if (!is_our_sampling(jpeg) || jpeg.arith_code || !jpeg_has_multiple_scans(&jpeg)) fail(decoding, Failure::kKind);
  libjpeg::limit_memory(decoding, request.codec);
  jvirt_barray_ptr* arrays = nullptr;
  libjpeg::by_blocks(decoding, [&] { return (arrays = jpeg_read_coefficients(&jpeg)) != nullptr; });
  if (decoding.damage != 0) fail(decoding, Failure::kDamaged);
  if (jpeg.err->num_warnings != 0 || !is_complete(jpeg)) fail(decoding, Failure::kKind);
  const kernels::jpeg::Header header = header_of(jpeg);
  const kernels::packed::Grid grid = kernels::packed::grid_of(header);
  if (!encoder.begin(header)) fail(decoding, Failure::kKind);
  for (int line = 0; line < grid.rows; ++line) {
    if (!pack_row(jpeg, arrays, grid, line, encoder)) fail(decoding, Failure::kKind);
    if (decoding.deadline.is_over()) fail(decoding, Failure::kDeadline);
  }
  return true;
}

}  // namespace

Result<void> pack_coefficients(const DecodeRequest& request, kernels::packed::Encoder& encoder) {
  Decoding decoding;
  libjpeg::prepare(decoding, request.deadline);
  const bool packed = try_pack(decoding, request, encoder);
  Result<void> result = packed ? Result<void>() : libjpeg::error_of(decoding, request.stored);
  jpeg_destroy_decompress(&decoding.jpeg);
  return result;
}

}  // namespace millrace
