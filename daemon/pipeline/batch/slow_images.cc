#include "daemon/pipeline/batch/slow_images.h"

#include <string>

#include "proto/base/printable.h"

namespace millrace {
namespace {

constexpr std::size_t kLongestName = 300;  // bytes of a file's in the log

}  // namespace

void SlowImages::tell(const Batch& batch, std::uint32_t index, std::string_view verb, std::chrono::nanoseconds took) {
  line_.warn("slow: " + std::string(verb) + ' ' +
             printable(source_name(batch.request().samples[index].source), kLongestName) + " took " +
             std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(took).count()) + " ms, for session " +
             std::to_string(raw(batch.session().id)));
}

}  // namespace millrace
