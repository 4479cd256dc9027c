// Runs scenes of batch.h, each in a process of its own, and the maker of xclbins.
#pragma once

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hls/table/kernel_table.h"
#include "tests/support/host/process.h"
#include "tests/support/host/temp_folder.h"

namespace millrace {

using Environment = std::vector<std::pair<std::string, std::string>>;

struct Played {
  int status = -1;
  std::string output, errors;

  bool prints(const std::string& line) const { return ("\n" + output).find("\n" + line + "\n") != std::string::npos; }
  bool reports(const std::string& text) const { return errors.find(text) != std::string::npos; }
};

inline std::ostream& operator<<(std::ostream& out, const Played& played) {
  return out << "status " << played.status << "\n" << played.output << "---\n" << played.errors;
}

inline Process start_scene(std::vector<std::string> arguments, const Environment& environment = {}) {
  arguments.insert(arguments.begin(), tests_folder() + "/millrace_card_scenes");
  return Process::spawn({.argv = arguments, .env = environment, .user = {}, .folder = {}});
}

inline Played play(std::vector<std::string> arguments, const Environment& environment = {}) {
  const Process process = start_scene(std::move(arguments), environment);
  const std::optional<int> status = process.wait(std::chrono::seconds(60));
  return {status.value_or(-1), process.output(), process.errors()};
}

// A program of MILLRACE_FPGA_FOLDER.
inline Played run_program(const std::string& name, std::vector<std::string> arguments,
                          const Environment& environment = {}) {
  const char* const folder = std::getenv("MILLRACE_FPGA_FOLDER");
  arguments.insert(arguments.begin(), std::string(folder == nullptr ? "." : folder) + "/" + name);
  const Process process = Process::spawn({.argv = arguments, .env = environment, .user = {}, .folder = {}});
  const std::optional<int> status = process.wait();
  return {status.value_or(-1), process.output(), process.errors()};
}

inline Played make_xclbin(std::vector<std::string> arguments) {
  return run_program("millrace-xclbin", std::move(arguments));
}

inline void put_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

inline std::string contents_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// offsetof(axlf, m_header.uuid): magic, signature's length, reserved, key block, id; then the header's fields before it.
constexpr std::size_t kUuidInXclbin = 8 + 4 + 28 + 256 + 8 + 112;

}  // namespace millrace
