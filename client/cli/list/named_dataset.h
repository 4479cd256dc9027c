// What a command line names as its images: a folder, or a list of samples (list_file.h).
#pragma once

#include <string>
#include <vector>

#include "client/cli/connection.h"
#include "millrace/client.h"
#include "proto/base/result.h"

namespace millrace::cli {

struct NamedDataset {
  std::string path;  // absolute and without links
  bool is_list = false;
};

// Errors begin with `option` and the path: not there, not to be reached, a file that is no list; or with --extension,
// which `extensions` are of: there are some, and it is a list.
Result<NamedDataset> named_dataset(const std::string& option, const std::string& path,
                                   const std::vector<std::string>& extensions);

// A connection to a daemon that may read it: a private one gets the folder, or what all files of the list have in common.
Result<Connection> open_connection_for(const ConnectionOptions& options, const NamedDataset& named);

// A list takes of `options` what open_list() does, but the time: it is as long as it is. Ends at an interrupt with
// kCancelled.
Result<Dataset> open_named(Session& session, const NamedDataset& named, DatasetOptions options);

}  // namespace millrace::cli
