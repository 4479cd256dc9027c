#include "client/cli/extension_option.h"

#include <algorithm>
#include <cctype>

#include "client/cli/options.h"

namespace millrace::cli {
namespace {

// ".JPEG", "JPG" and "jpg" alike become what the daemon compares with: lower case, without the dot. "*" stays.
Check file_ending() {
  return {[](std::string& text) -> std::string {
            if (text == "*") return "";
            std::string ending = text.substr(text.starts_with('.') ? 1 : 0);
            std::transform(ending.begin(), ending.end(), ending.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
            const bool fine =
                !ending.empty() && ending.size() <= 16 &&
                std::all_of(ending.begin(), ending.end(), [](unsigned char c) { return std::isalnum(c) != 0; });
            if (!fine)
              return "must be the ending of a file's name, 1 to 16 letters and digits (jpg), or '*', is " + text;
            text = ending;
            return "";
          },
          ""};
}

}  // namespace

void add_extension_option(Command command, std::vector<std::string>& endings) {
  command
      .option("--extension", endings,
              "only files with this ending (jpg, .JPG: the same), '*' for every file; may be repeated (default: "
              "what the daemon "
              "decodes: jpg, png, webp, ...)")
      .check(file_ending());
}

void require_agree(const std::vector<std::string>& endings) {
  const bool every = std::find(endings.begin(), endings.end(), "*") != endings.end();
  for (const std::string& ending : endings) {
    if (every && ending != "*") reject("--extension", "'*' is every file already: leave out either it or " + ending);
  }
}

}  // namespace millrace::cli
