// millrace web: metrics, figures and a page by HTTP, from a process beside the daemon.
#include <signal.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/cli/command.h"
#include "client/cli/connection.h"
#include "client/cli/options.h"
#include "client/cli/web/daemon_link.h"
#include "client/cli/web/host_names.h"
#include "client/cli/web/http_server.h"
#include "client/cli/web/listen_at.h"
#include "client/cli/web/web_answers.h"

namespace millrace::cli {
namespace {

constexpr const char* kDefaultListen = "127.0.0.1:9464";

struct WebOptions {
  std::string socket;
  std::vector<std::string> listen;
  std::vector<std::string> hosts;
};

// Passed sockets, or else those of --listen.
Result<std::vector<WebListener>> web_listeners(const WebOptions& options) {
  MILLRACE_TRY(std::vector<WebListener> listeners, passed_web_listeners());
  if (!listeners.empty() && !options.listen.empty())
    return Error{Code::kInvalid, "--listen: the service manager has passed sockets already; leave it out"};
  if (!listeners.empty()) return listeners;
  for (const std::string& where : options.listen.empty() ? std::vector<std::string>{kDefaultListen} : options.listen) {
    MILLRACE_TRY(WebListener listener, listen_at(where));
    listeners.push_back(std::move(listener));
  }
  return listeners;
}

int web(const WebOptions& options) {
  Result<Address> address = resolve_address(options.socket);
  if (!address) return report(address.error());
  Result<std::vector<WebListener>> listeners = web_listeners(options);
  if (!listeners) {
    const int code = report(listeners.error());
    return listeners.error().code == Code::kInvalid ? static_cast<int>(kUsage) : code;
  }
  boost::asio::io_context context(1);
  const HttpLimits limits;
  const HostNames names(options.hosts);
  DaemonLink link(context, *std::move(address));
  HttpServer* running = nullptr;
  WebAnswers answers(link, [&running] {
    return WebFigures{
        .connections = running->connections(), .requests = running->requests(), .evicted = running->evicted()};
  });
  std::vector<UniqueFd> sockets;
  for (WebListener& listener : *listeners) sockets.push_back(listener.take_socket());
  HttpServer server(context, std::move(sockets), limits, names,
                    [&answers](const WebRequest& request, HttpConnection::Reply reply) {
                      answers.answer(request, std::move(reply));
                    });
  running = &server;
  boost::asio::signal_set signals(context, SIGTERM, SIGINT);
  signals.async_wait([&](boost::system::error_code, int) {
    server.stop();
    link.stop();
  });
  ::signal(SIGPIPE, SIG_IGN);
  server.start();
  for (const WebListener& listener : *listeners)
    std::printf("millrace web: listening on %s\n", listener.name().c_str());
  std::fflush(stdout);
  context.run();
  return kFine;
}

}  // namespace

void add_web(Command app, Chosen& chosen) {
  auto options = std::make_shared<WebOptions>();  // shared with the callback
  const Command command = app.subcommand("web", "Serve metrics for Prometheus, and a page, by HTTP.");
  command
      .option("--listen", options->listen,
              "ADDRESS:PORT or unix:PATH to listen at, port 0 for any; may be repeated (default: " +
                  std::string(kDefaultListen) + ", or the sockets that systemd passes)")
      .check(not_empty())
      .one_value_each()
      .type_name("WHERE");
  command
      .option("--host", options->hosts,
              "a name by which this server is asked for, besides addresses and localhost; may be repeated")
      .check(not_empty())
      .one_value_each()
      .type_name("NAME");
  command
      .option("--socket", options->socket,
              "the daemon's socket (default: $MILLRACE_SOCKET, else " + std::string(kDefaultSocket) + ")")
      .check(not_empty())
      .group("Daemon");
  command.footer(
      "What is there:\n"
      "  /                 a page: sessions and what they wait for\n"
      "  /metrics          Prometheus' text format, or OpenMetrics 1.0 where the Accept header asks for it\n"
      "  /api/statistics   all figures as JSON\n"
      "  /api/why          why sessions wait, as JSON; /api/why/17 of one; ?history=1 with ten minutes of figures\n"
      "  /healthz          200 while this server runs, with or without a daemon\n"
      "\n"
      "Every program that reaches the port sees sessions, jobs and users by name, and no paths. There is no TLS and "
      "no password: listen at other addresses than 127.0.0.1 only in a network that you trust, or behind a proxy.\n"
      "\n"
      "Examples:\n"
      "  millrace web &\n"
      "  curl -s localhost:9464/metrics | grep millrace_up\n"
      "  millrace web --listen [::]:9464 --host gpu7.example.org\n"
      "  systemctl enable --now millrace-web.socket          as a service, at 127.0.0.1:9464");
  command.callback([options, &chosen] { chosen = [options] { return web(*options); }; });
}

}  // namespace millrace::cli
