#include "hls/card/xclbin/connectivity.h"

#include "hls/card/table_view.h"
#include "hls/card/xclbin/platform.h"

namespace millrace::card {

std::string connectivity_text(const hls::Image& image, unsigned units) {
  std::string text = "[connectivity]\nnk=" + std::string(image.kernel) + ":" + std::to_string(units) + ":";
  for (unsigned unit = 0; unit < units; ++unit) text += (unit == 0 ? "" : ".") + unit_name(image, unit);
  text += "\n";
  for (unsigned unit = 0; unit < units; ++unit)
    for (std::size_t i = 0; i < hls::kArgumentCount; ++i)
      if (is_pointer(i))
        text += "sp=" + unit_name(image, unit) + "." + hls::kArguments[i].name + ":DDR[" +
                std::to_string(bank_of_unit(unit)) + "]\n";
  return text;
}

}  // namespace millrace::card
