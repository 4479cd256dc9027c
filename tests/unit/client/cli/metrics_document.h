// daemon/doc/metrics.md, made of the tables of figures. Pure, thread-safe.
#pragma once

#include <string>

namespace millrace::cli {

std::string metrics_document();

}  // namespace millrace::cli
