// Programs, our commands among them, run to their end. For tests.
#pragma once

#include <boost/property_tree/json_parser.hpp>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/host/process.h"

namespace millrace {

struct Ran {
  int status = -1;
  std::string output;
  std::string errors;
};

// The program at the path `argv[0]`.
inline Ran run_program(std::vector<std::string> argv, std::vector<std::pair<std::string, std::string>> env = {}) {
  const Process process = Process::spawn({.argv = std::move(argv), .env = std::move(env)});
  const auto status = process.wait(std::chrono::seconds(60));
  if (!status) throw std::runtime_error("the command does not end");
  return {*status, process.output(), process.errors()};
}

// One of our commands. `state`: $XDG_STATE_HOME, where private daemons keep what they remember; by default nowhere.
inline Ran run(std::vector<std::string> argv, const std::string& state = "/dev/null") {
  argv.front() = bin_folder() + "/" + argv.front();
  return run_program(std::move(argv), {{"NO_COLOR", "1"}, {"XDG_STATE_HOME", state}});
}

// Throws when it is not JSON: the test fails.
inline boost::property_tree::ptree parsed(const std::string& json) {
  std::istringstream text(json);
  boost::property_tree::ptree object;
  boost::property_tree::read_json(text, object);
  return object;
}

}  // namespace millrace
