// A part of an image, in whole MCUs. Values.
#pragma once

namespace millrace::kernels::jpeg {

// MCU columns or rows, from `begin` up to, not including, `end`.
struct McuRange {
  int begin = 0, end = 0;
};
struct McuWindow {
  McuRange lines, columns;
};

}  // namespace millrace::kernels::jpeg
