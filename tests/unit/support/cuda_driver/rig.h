// Runs scenes of scenes/scenes.h, each in a process of its own.
#pragma once

#include <catch2/catch.hpp>
#include <chrono>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/host/process.h"

namespace millrace {

using Environment = std::vector<std::pair<std::string, std::string>>;

inline Process start_scene(std::vector<std::string> arguments, const Environment& environment = {}) {
  arguments.insert(arguments.begin(), tests_folder() + "/millrace_cuda_driver_scenes");
  return Process::spawn({.argv = arguments, .env = environment, .user = {}, .folder = {}});
}

struct Played {
  int status = -1;
  std::string output, errors;

  bool prints(const std::string& line) const { return ("\n" + output).find("\n" + line + "\n") != std::string::npos; }
  bool reports(const std::string& text) const { return errors.find(text) != std::string::npos; }
};

inline std::ostream& operator<<(std::ostream& out, const Played& played) {
  return out << "status " << played.status << "\n" << played.output << "---\n" << played.errors;
}

// Status -1: it did not end within `limit`.
inline Played end_of(const Process& process, std::chrono::milliseconds limit = Process::kPatience) {
  const std::optional<int> status = process.wait(limit);
  return {status.value_or(-1), process.output(), process.errors()};
}

inline Played play(std::vector<std::string> arguments, const Environment& environment = {}) {
  return end_of(start_scene(std::move(arguments), environment));
}

// For processes that end before the driver gives up waiting for its streams.
inline Played play_soon(std::vector<std::string> arguments, const Environment& environment = {}) {
  return end_of(start_scene(std::move(arguments), environment), std::chrono::seconds(8));
}

}  // namespace millrace
