// Whether our reader of JPEG headers and libjpeg-turbo's see the same picture. A plain function.
#pragma once

#include "kernels/jpeg/header.h"
#include "tests/support/jpeg/jpeg_coefficients.h"

namespace millrace {

inline bool same_header(const kernels::jpeg::Header& header, const JpegCoefficients& expected) {
  const auto& planes = expected.planes;
  const bool alone = planes.size() == 1;
  if (header.size != kernels::Size{expected.width, expected.height}) return false;
  if (header.components != static_cast<int>(planes.size())) return false;
  if (header.restart_interval != static_cast<int>(expected.restart_interval)) return false;
  if (alone ? !expected.is_grey : !expected.is_ycc) return false;
  for (std::size_t i = 0; i < planes.size(); ++i) {
    const auto& component = header.component[i];
    if (*header.quant[component.quant] != planes[i].quant) return false;
    if (!alone && (component.h != planes[i].h || component.v != planes[i].v)) return false;
  }
  return true;
}

}  // namespace millrace
