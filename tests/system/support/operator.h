// An administrator at a real daemon: its settings file edited, `millrace admin` called. Thread-bound(the test).
#pragma once

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/host/eventually.h"
#include "tests/support/host/temp_folder.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/system/support/command.h"
#include "tests/system/support/daemon.h"

namespace millrace {

inline Ran admin(const Daemon& daemon, const std::vector<std::string>& words) {
  std::vector<std::string> argv{"millrace", "admin"};
  argv.insert(argv.end(), words.begin(), words.end());
  argv.insert(argv.end(), {"--socket", daemon.socket()});
  return run(std::move(argv));
}

// In the daemon's settings file, which must have `part`.
inline void edit(const Daemon& daemon, const std::string& part, const std::string& instead) {
  std::ostringstream whole;
  whole << std::ifstream(daemon.settings()).rdbuf();
  std::string text = whole.str();
  const std::size_t at = text.find(part);
  if (at == std::string::npos) throw std::runtime_error("the settings have no " + part);
  write_file(daemon.settings(), text.replace(at, part.size(), instead));
}

// Whether the daemon's log has this, now or soon: what it writes is read by a thread of the test's.
inline bool logs(const Daemon& daemon, const std::string& text) {
  return eventually([&] { return daemon.errors().find(text) != std::string::npos; });
}

}  // namespace millrace
