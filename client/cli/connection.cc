#include "client/cli/connection.h"

#include <cstdio>
#include <utility>

#include "client/cli/folder.h"
#include "client/cli/options.h"
#include "client/cli/text/progress.h"
#include "proto/base/printable.h"

namespace millrace::cli {
namespace {

constexpr std::chrono::seconds kDevicePatience{120};  // a GPU's driver that has to compile takes half a minute

void add_device_option(Command command, Option own, const std::string& name, std::string& word,
                       const std::string& devices) {
  command
      .option(name, word,
              "with --private: whether it uses " + devices +
                  ": no; auto, where there are some; yes, or it does not start (default: no)")
      .needs(own)
      .type_name("no|auto|yes")
      .check({one_of({"no", "auto", "yes"}).complaint, "{no,auto,yes}"})
      .group("Daemon");
}

}  // namespace

void add_connection_options(Command command, ConnectionOptions& options) {
  const Option socket =
      command
          .option("--socket", options.socket,
                  "the daemon's socket (default: $MILLRACE_SOCKET, else " + std::string(kDefaultSocket) + ")")
          .check(not_empty())
          .group("Daemon");
  const Option own =
      command.flag("--private", options.own, "start a daemon for this command alone, and stop it at the end")
          .excludes(socket)
          .group("Daemon");
  command.option("--lanes", options.lanes, "with --private: CPU lanes (default: one a core)")
      .needs(own)
      .check(whole_number(1, 1024))
      .group("Daemon");
  add_device_option(command, own, "--cuda", options.cuda, "NVIDIA's GPUs");
  add_device_option(command, own, "--fpga", options.fpga, "FPGA cards");
  command.option("--root", options.roots, "with --private: a further folder that it may read; may be repeated")
      .needs(own)
      .check(not_empty())
      .group("Daemon");
}

Result<Connection> open_connection(const ConnectionOptions& options, const std::vector<std::string>& roots) {
  if (!options.own) {
    MILLRACE_TRY(Client client, Client::connect(options.socket));
    return Connection{std::nullopt, std::move(client)};
  }
  for (const std::string& root : options.roots) MILLRACE_TRY_VOID(canonical_folder("--root", root));
  PrivateDaemonOptions daemon_options{.roots = options.roots, .lanes = options.lanes};
  for (const auto& [name, word] : {std::pair("--cuda", options.cuda), std::pair("--fpga", options.fpga)}) {
    if (word.empty() || word == "no") continue;
    daemon_options.arguments.insert(daemon_options.arguments.end(), {name, word});
    daemon_options.timeout = kDevicePatience;
  }
  daemon_options.roots.insert(daemon_options.roots.end(), roots.begin(), roots.end());
  MILLRACE_TRY(PrivateDaemon daemon, PrivateDaemon::start(daemon_options));
  MILLRACE_TRY(Client client, Client::connect(daemon.socket()));
  return Connection{std::move(daemon), std::move(client)};
}

int report(const Error& error) {
  std::fprintf(stderr, "millrace: %s\n", printable(error.message).c_str());
  return error.code == Code::kUnavailable ? kUnreachable : kFailed;
}

int report_nothing(std::uint64_t bad) {
  const std::string why = bad > 0 ? "all " + grouped(bad) + " are bad" : "there was nothing to make one of";
  std::fprintf(stderr, "millrace: no image came out: %s\n", why.c_str());
  return kFailed;
}

}  // namespace millrace::cli
