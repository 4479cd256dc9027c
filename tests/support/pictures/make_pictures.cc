// millrace_make_pictures FOLDER COUNT: a folder of made-up photographs, in classes, of mixed sizes and formats, for the
// demo.
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "tests/support/pictures/image_folder.h"

int main(int argc, char** argv) {
  const int count = argc == 3 ? std::atoi(argv[2]) : 0;
  if (count < 1) {
    std::fprintf(stderr, "usage: millrace_make_pictures FOLDER COUNT\n");
    return 2;
  }
  try {
    millrace::write_image_folder(argv[1],
                                 {.images = static_cast<std::uint32_t>(count), .min_side = 320, .max_side = 960});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "millrace_make_pictures: %s\n", error.what());
    return 1;
  }
  return 0;
}
