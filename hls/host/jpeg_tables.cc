#include "hls/host/jpeg_tables.h"

#include <algorithm>
#include <cstring>

#include "kernels/jpeg/canonical_code.h"

namespace millrace::hls {
namespace {

using kernels::jpeg::TableKind;

bool put_code(const kernels::jpeg::HuffmanSpec& spec, TableKind kind, HuffmanTable& table) {
  kernels::jpeg::CanonicalCode code;
  if (!make_code(spec, kind, code)) return false;
  std::ranges::copy(code.limit, table.limit);
  std::ranges::copy(code.offset, table.offset);
  std::ranges::copy(code.symbols, table.symbols);
  return true;
}

void put_frame(const kernels::jpeg::Header& header, JpegTables& tables) {
  tables.components = static_cast<std::uint8_t>(header.components);
  const bool grey = header.components == 1;
  tables.h = grey ? 1 : header.component[0].h;
  tables.v = grey ? 1 : header.component[0].v;
  for (std::size_t i = 0; i < static_cast<std::size_t>(header.components); ++i) {
    const std::uint8_t quant = header.component[i].quant;
    tables.quant[i] = quant;
    std::ranges::copy(*header.quant[quant], tables.quant_table[quant]);
  }
  tables.restart_interval = static_cast<std::uint32_t>(header.restart_interval);
}

}  // namespace

std::string_view put_tables(const kernels::jpeg::Header& header, JpegTables& tables) {
  put_frame(header, tables);
  bool dc[kernels::jpeg::kMostTables] = {}, ac[kernels::jpeg::kMostTables] = {};
  for (std::size_t i = 0; i < static_cast<std::size_t>(header.components); ++i) {
    const kernels::jpeg::Component& component = header.component[i];
    tables.dc[i] = component.dc;
    tables.ac[i] = component.ac;
    if ((!dc[component.dc] && !put_code(*header.dc[component.dc], TableKind::kDc, tables.dc_table[component.dc])) ||
        (!ac[component.ac] && !put_code(*header.ac[component.ac], TableKind::kAc, tables.ac_table[component.ac])))
      return "a Huffman table that libjpeg-turbo refuses";
    dc[component.dc] = ac[component.ac] = true;
  }
  return {};
}

}  // namespace millrace::hls
