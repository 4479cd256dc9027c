// What bounds sessions, for people: words and figures at 80 columns, the dearest cause first. Pure functions,
// thread-safe. The Python package's str() has the same words (client/python/src/millrace/_why.py).
#pragma once

#include <string>
#include <vector>

#include "millrace/findings.h"

namespace millrace::cli {

// A paragraph a session.
std::string why_text(const SessionFindings& session);

// Those that ask for something, the one whose program waits most first.
std::vector<SessionFindings> busy_sessions(std::vector<SessionFindings> sessions);

}  // namespace millrace::cli
