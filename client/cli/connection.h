// --socket and --private: which daemon a subcommand talks to. Values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/cli/command.h"
#include "millrace/client.h"
#include "millrace/private_daemon.h"

namespace millrace::cli {

class Command;

struct ConnectionOptions {
  std::string socket;
  bool own = false;  // --private
  std::uint32_t lanes = 0;
  std::string cuda, fpga;  // empty: no GPUs, no cards
  std::vector<std::string> roots;
};

void add_connection_options(Command command, ConnectionOptions& options);

struct Connection {
  std::optional<PrivateDaemon> daemon;  // outlives the client
  Client client;
};

// `roots`: what a private daemon must read besides --root.
Result<Connection> open_connection(const ConnectionOptions& options, const std::vector<std::string>& roots = {});

// Prints "millrace: MESSAGE" on stderr; the exit code that belongs to it.
int report(const Error& error);
// The same for work that went well and made nothing.
int report_nothing(std::uint64_t bad);

}  // namespace millrace::cli
