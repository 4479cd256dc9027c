// millrace-xclbin: makes what a simulated card is programmed with, and what v++ wants to know to make the real thing.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "hls/card/xclbin/connectivity.h"
#include "hls/card/xclbin/platform.h"
#include "hls/card/xclbin/xclbin_file.h"

namespace millrace::card {
namespace {

int usage() {
  std::fprintf(stderr,
               "usage: millrace-xclbin IMAGE UNITS BITSTREAM OUTPUT    an xclbin of an image of the kernel table\n"
               "       millrace-xclbin --connectivity IMAGE UNITS      the v++ --config text for it\n");
  return 2;
}

const hls::Image* find_image(const std::string& name) {
  for (const hls::Image& image : hls::kImages)
    if (name == image.name) return &image;
  std::fprintf(stderr, "millrace-xclbin: no image is called %s; hls/table/kernel_table.h has them\n", name.c_str());
  return nullptr;
}

// 0: it is no number of units.
unsigned read_units(const char* text) {
  char* end = nullptr;
  const unsigned long units = std::strtoul(text, &end, 10);
  if (*end == '\0' && units >= 1 && units <= kMostUnitsOfImage) return static_cast<unsigned>(units);
  std::fprintf(stderr, "millrace-xclbin: %s is no number of compute units; 1 to %u are possible\n", text,
               kMostUnitsOfImage);
  return 0;
}

int write_xclbin(const hls::Image& image, unsigned units, const char* bitstream, const char* output) {
  std::ifstream from(bitstream, std::ios::binary);
  const std::string bits{std::istreambuf_iterator<char>(from), {}};
  if (!from || bits.empty()) {
    std::fprintf(stderr, "millrace-xclbin: %s cannot be read\n", bitstream);
    return 1;
  }
  const std::string bytes = xclbin_bytes(image, units, bits);
  std::ofstream to(output, std::ios::binary);
  to.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  to.close();
  if (to) return 0;
  std::fprintf(stderr, "millrace-xclbin: %s cannot be written\n", output);
  return 1;
}

int run(int count, char** arguments) {
  const bool text = count == 4 && std::strcmp(arguments[1], "--connectivity") == 0;
  if (!text && count != 5) return usage();
  const hls::Image* const image = find_image(arguments[text ? 2 : 1]);
  const unsigned units = image == nullptr ? 0 : read_units(arguments[text ? 3 : 2]);
  if (units == 0) return 2;
  if (!text) return write_xclbin(*image, units, arguments[3], arguments[4]);
  std::fputs(connectivity_text(*image, units).c_str(), stdout);
  return 0;
}

}  // namespace
}  // namespace millrace::card

int main(int count, char** arguments) {
  return millrace::card::run(count, arguments);
}
