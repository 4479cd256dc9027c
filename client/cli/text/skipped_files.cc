#include "client/cli/text/skipped_files.h"

#include <cstdio>

#include "client/cli/text/progress.h"

namespace millrace::cli {
std::string describe_skipped(std::uint64_t files, const std::vector<SkippedFiles>& groups) {
  return grouped(files) + (files == 1 ? " file is no sample: " : " files are no samples: ") +
         skipped_kinds(files, groups, grouped);
}

void print_skipped(const Dataset& dataset) {
  if (dataset.skipped_files() == 0) return;
  std::fprintf(stderr, "millrace: %s\n", describe_skipped(dataset.skipped_files(), dataset.skipped()).c_str());
}

}  // namespace millrace::cli
