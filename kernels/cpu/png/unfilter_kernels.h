// The functions that a target supplies for rows of PNG files. Internal to kernels/cpu/png.
#pragma once

#include "kernels/cpu/png/unfilter.h"

namespace millrace::kernels::png {

struct RowFunctions {
  // By filter, and by pixel size: 1, 2, 3, 4, 6, 8.
  UnfilterRow unfilter[kFilters][6];
  DropFourth drop_fourth;
};

const RowFunctions& scalar_row_functions();
#if defined(__x86_64__)
const RowFunctions& avx2_row_functions();
const RowFunctions& avx512_row_functions();
#endif

}  // namespace millrace::kernels::png
