// millrace-opener: settings -> two capabilities -> serve. README.md says what it is for.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <optional>
#include <string>

#include "daemon/observe/log.h"
#include "daemon/observe/supervisor.h"
#include "daemon/opener/listening.h"
#include "daemon/opener/privileges.h"
#include "daemon/opener/server.h"
#include "daemon/settings/key_table.h"
#include "daemon/settings/settings.h"
#include "proto/base/printable.h"
#include "proto/base/sockets/handoff_path.h"

namespace millrace {
namespace {

constexpr int kUsage = 2;  // exit status of wrong usage and of wrong settings

struct CommandLine {
  std::string config, socket, daemon_user;
  std::optional<int> exit_status;  // all was said already
};

void add_options(CLI::App& app, CommandLine& line) {
  app.set_version_flag("--version", std::string("millrace-opener ") + MILLRACE_VERSION);
  app.failure_message([](const CLI::App*, const CLI::Error& error) {
    return "millrace-opener: " + printable(error.what()) +
           "\nmillrace-opener: `millrace-opener --help` shows what there is\n";
  });
  app.add_option(
         "--config", line.config,
         "The daemon's settings file. Of it count files.roots, files.as_root, daemon.socket and "
         "daemon.log_level; read at the start, and files.roots again when the daemon is started or reads its own anew")
      ->required();
  auto* const socket = app.add_option("--socket", line.socket,
                                      "Unix socket to listen on, when run by hand; else the one that systemd passes");
  auto* const user = app.add_option("--daemon-user", line.daemon_user,
                                    "The daemon's user, by name or number: nobody else may connect");
  socket->needs(user);
  app.footer(
      "Opens files for millraced as the client who asks for them: the kernel decides, so group-readable data sets need "
      "not be readable by the daemon's own user. It learns who a client is from the kernel, by the client's own "
      "connection, which the daemon passes to it; it opens nothing outside files.roots.\n\n"
      "It needs CAP_SETUID and CAP_SETGID, drops everything else, and refuses to run as root. systemd's units "
      "millrace-opener.socket and millrace-opener.service start it; millraced finds it by files.opener.\n\n"
      "By hand, as root, with a user of its own (here `nobody`) and a daemon of the user `millrace`:\n"
      "  setpriv --reuid=nobody --regid=nogroup --clear-groups --inh-caps=+setuid,+setgid "
      "--ambient-caps=+setuid,+setgid \\\n"
      "    millrace-opener --config /etc/millrace/millrace.toml --socket /tmp/opener.sock --daemon-user millrace\n\n"
      "After files.as_root or daemon.socket was changed: restart it. What clients wait for meanwhile is asked again.\n"
      "Exit status: 0 stopped by SIGTERM or SIGINT, 1 could not start, 2 wrong usage or settings.");
}

CommandLine read_command_line(int argc, char** argv) {
  CommandLine line;
  CLI::App app{"millrace-opener: opens files as the client who asks"};
  add_options(app, line);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    line.exit_status = app.exit(error) == 0 ? 0 : kUsage;
  }
  return line;
}

int fail(const Error& error, int status) {
  print_failure("millrace-opener", error.message);
  return status;
}

// A file that its own user may not read is the likeliest thing to be wrong, for the daemon starts with it.
Error not_loaded(Error error) {
  if (error.code != Code::kDenied) return error;
  const std::string user = std::to_string(::geteuid());
  error.message +=
      ": the opener runs as a user of its own, uid " + user +
      ", who must be able to read the settings, as the daemon's user is: chmod o+r that file, or setfacl -m u:" + user +
      ":r on it; the folders above need o+x likewise";
  return error;
}

Result<std::vector<std::string>> roots_in(const std::string& config) {
  Result<Settings> settings = load_settings(config, KeyTable({}, UnknownKeys::kOfOthers));
  if (!settings) return not_loaded(std::move(settings).error());
  log_info("the daemon has had the settings read again: opening files of " + std::to_string(settings->roots.size()) +
           (settings->roots.size() == 1 ? " root" : " roots"));
  return std::move(settings->roots);
}

Result<OpenerServer::Options> server_options(const CommandLine& line, const Settings& settings) {
  OpenerServer::Options options{.roots = settings.roots,
                                .read_roots = [config = line.config] { return roots_in(config); },
                                .rules = {.handoff = handoff_path(settings.socket),
                                          .root = settings.as_root ? RootCallers::kServed : RootCallers::kRefused,
                                          .unmapped = unmapped_ids()}};
  if (line.daemon_user.empty()) return options;
  options.daemon = user_of(line.daemon_user);
  if (!options.daemon) return Error{Code::kInvalid, "--daemon-user: there is no user " + printable(line.daemon_user)};
  return options;
}

Result<void> serve(const CommandLine& line, OpenerServer::Options options) {
  MILLRACE_TRY_VOID(keep_two_capabilities());
  MILLRACE_TRY(UniqueFd listener, line.socket.empty() ? passed_socket() : listen_at(line.socket));
  const std::string roots = std::to_string(options.roots.size()) + (options.roots.size() == 1 ? " root" : " roots");
  MILLRACE_TRY(const auto server, OpenerServer::create(std::move(listener), std::move(options)));
  log_info("opening files of " + roots + " for clients of " + (line.socket.empty() ? "the daemon" : line.socket));
  const Supervisor supervisor = Supervisor::of_this_process();
  supervisor.ready("opening files of " + roots);
  server->run();
  supervisor.stopping("");
  // At once: threads may hang on a mount, and the daemon asks again whatever had no answer.
  if (!line.socket.empty()) ::unlink(line.socket.c_str());
  std::_Exit(0);
}

}  // namespace
}  // namespace millrace

int main(int argc, char** argv) {
  using namespace millrace;
  const CommandLine line = read_command_line(argc, argv);
  if (line.exit_status) return *line.exit_status;
  const Result<Settings> settings = load_settings(line.config, KeyTable({}, UnknownKeys::kOfOthers));
  if (!settings) return fail(not_loaded(settings.error()), kUsage);
  start_log(settings->log_level);
  Result<OpenerServer::Options> options = server_options(line, *settings);
  if (!options) return fail(options.error(), kUsage);
  if (const Result<void> served = serve(line, *std::move(options)); !served) return fail(served.error(), 1);
  return 0;
}
