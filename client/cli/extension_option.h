// --extension: which of a folder's files are samples.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace millrace::cli {

// `endings` becomes what DatasetOptions::extensions takes; it must outlive the parsing.
void add_extension_option(CLI::App& command, std::vector<std::string>& endings);

// For a command's callback. Throws CLI::ValidationError when "*" is among `endings` and not alone.
void require_agree(const std::vector<std::string>& endings);

}  // namespace millrace::cli
