// Passes of the daemon over a folder, or a list, for the sake of what it keeps of the files: whole pictures, tiny tensors that
// nobody looks at. By the daemon, so that only those files are read that the caller may read.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "client/cli/connection.h"
#include "client/cli/list/named_dataset.h"
#include "client/cli/text/unpacked.h"
#include "millrace/client.h"

namespace millrace::cli {

struct FolderPass {
  std::string session;  // its name, for the daemon's statistics
  NamedDataset dataset;
  std::vector<std::string> extensions;
  Recipe recipe;
  CacheUse cache = CacheUse::kPacked;  // the most that is kept, from the first access on
  std::string title;                   // of the progress bar
  bool quiet = false;                  // no lines where there is no terminal
  bool lists_bad = true;               // bad samples with their reasons, on stderr
};

struct PassOutcome {
  std::uint64_t images = 0, bad = 0;
  UnpackedCounts unpacked;  // of the images
  std::chrono::duration<double> elapsed{};
};

// All of every picture counts, and there is next to nothing to resample.
Recipe tiny_recipe();

// Ends early, without an error, at an interrupt.
Result<PassOutcome> pass_over(Client& client, const FolderPass& pass);

}  // namespace millrace::cli
