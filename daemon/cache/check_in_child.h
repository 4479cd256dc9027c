// Whether a database of seek indexes is sound, found out by a process of its own, which a damaged one may crash.
#pragma once

#include <string>

namespace millrace {

// What millraced's command line has for it, followed by the path.
inline constexpr const char* kCheckIndexOption = "--check-index";

// Runs this program with that option, and waits. True as well where there is no database, or no process can be had.
// Thread-safe.
bool check_in_child(const std::string& path);

}  // namespace millrace
