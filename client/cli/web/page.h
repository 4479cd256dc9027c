// The page that `/` serves: one file, embedded in the program, whose script and style the browser takes by their hashes
// alone. Functions, thread-safe.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace millrace::cli {

std::string_view page_text();

// The Content-Security-Policy for a page: its own <script> and <style> elements, requests to where it came from, and
// nothing else. Elements with attributes are not its own.
std::string page_policy(std::string_view page);

}  // namespace millrace::cli
