// Checks a database of seek indexes in a child process, because a damaged one can crash whoever reads it.
#pragma once

#include <string>

namespace millrace {

// The option of millraced's command line that does it; the database's path follows it.
inline constexpr const char* kCheckIndexOption = "--check-index";

// Runs this program with that option and waits. Also true if there is no database, or no process can be started.
// Thread-safe.
bool check_in_child(const std::string& path);

}  // namespace millrace
