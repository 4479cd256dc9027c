// In a build without libavif's headers.
#include <stdexcept>

#include "tests/support/pictures/test_images.h"

namespace millrace {

bool can_make_avif() {
  return false;
}

std::vector<std::byte> make_avif(const AvifSpec&) {
  throw std::runtime_error("test image: this build has no libavif to write AVIF with");
}

}  // namespace millrace
