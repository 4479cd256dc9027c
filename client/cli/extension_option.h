// --extension: which of a folder's files are samples.
#pragma once

#include <string>
#include <vector>

namespace millrace::cli {

class Command;

// `endings` becomes what DatasetOptions::extensions takes; it must outlive the parsing.
void add_extension_option(Command command, std::vector<std::string>& endings);

// For a command's callback: reject()s "*" among `endings` that is not alone.
void require_agree(const std::vector<std::string>& endings);

}  // namespace millrace::cli
