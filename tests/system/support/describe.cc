#include "tests/system/support/describe.h"

#include <sstream>

namespace millrace {

std::string describe(const TensorView& tensor) {
  std::uint64_t hash = 14695981039346656037ULL;  // FNV-1a
  for (const std::byte byte : tensor.data()) hash = (hash ^ static_cast<std::uint64_t>(byte)) * 1099511628211ULL;
  std::ostringstream text;
  text << std::hex << hash << std::dec << " ids";
  for (const std::uint64_t id : tensor.ids()) text << ' ' << id;
  text << " labels";
  for (const std::int64_t label : tensor.labels()) text << ' ' << label;
  return text.str();
}

}  // namespace millrace
