// millrace why: what bounds sessions now, and what to change.
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "client/cli/connection.h"
#include "client/cli/interrupt.h"
#include "client/cli/options.h"
#include "client/cli/text/json.h"
#include "client/cli/text/why_text.h"

namespace millrace::cli {
namespace {

struct WhyOptions {
  ConnectionOptions connection;
  std::uint64_t session = 0;    // 0: all
  std::optional<double> watch;  // seconds between looks
  bool json = false;
};

void print_finding_json(const Finding& finding, Json& json) {
  json.begin_object().member("code", finding.code).member("share", finding.share).member("text", finding.text);
  json.member("advice", finding.advice).member("images_per_second", finding.images_per_second);
  json.key("figures").begin_object();
  for (const Figure& figure : finding.figures) json.member(figure.name, figure.value);
  json.end_object().key("paths").begin_array();
  for (const std::string& path : finding.paths) json.value(path);
  json.end_array().end_object();
}

void print_why_json(const std::vector<SessionFindings>& sessions) {
  Json json;
  json.begin_object().key("sessions").begin_array();
  for (const SessionFindings& session : sessions) {
    json.begin_object().member("id", session.id).member("name", session.name).member("uid", std::uint64_t{session.uid});
    json.member("job", session.job)
        .member("seconds", session.time.count())
        .member("images_per_second", session.images_per_second)
        .member("waited", session.waited)
        .member("waits_told", session.waits_told);
    json.key("findings").begin_array();
    for (const Finding& finding : session.findings) print_finding_json(finding, json);
    json.end_array().end_object();
  }
  std::printf("%s\n", json.end_array().end_object().text().c_str());
}

void print_why(const WhyOptions& options, const std::vector<SessionFindings>& all) {
  const std::vector<SessionFindings> sessions = options.session != 0 ? all : busy_sessions(all);
  if (options.json) return print_why_json(options.session != 0 ? all : sessions);
  if (all.empty()) std::puts("no session is open");
  if (!all.empty() && sessions.empty()) std::printf("no session asks for anything; %zu are open\n", all.size());
  for (std::size_t i = 0; i < sessions.size(); ++i)
    std::printf("%s%s", i == 0 ? "" : "\n", why_text(sessions[i]).c_str());
}

int why(const WhyOptions& options) {
  auto connection = open_connection(options.connection);
  if (!connection) return report(connection.error());
  const bool redraw = options.watch && !options.json && ::isatty(STDOUT_FILENO) != 0;
  watch_for_interrupt();
  for (bool again = false;; again = true) {
    const auto sessions = connection->client.explain(options.session);
    if (!sessions) return report(sessions.error());
    if (redraw) std::fputs("\x1b[H\x1b[2J", stdout);
    if (again && !redraw && !options.json) std::puts("");
    print_why(options, *sessions);
    if (!options.watch) return kFine;
    std::fflush(stdout);
    const auto pause = std::chrono::milliseconds(static_cast<std::int64_t>(*options.watch * 1000));
    if (!wait_unless_interrupted(pause)) return kFine;  // watching has no other end
  }
}

}  // namespace

void add_why(Command app, Chosen& chosen) {
  auto options = std::make_shared<WhyOptions>();  // shared with the callback
  const Command command = app.subcommand("why", "Why does my program wait, and what can I change?");
  command
      .option("session", options->session,
              "its number, as `millrace stats` shows it (default: every session that asks for something, the one whose "
              "program waits most first)")
      .check(whole_number(1));
  command.option("--watch", options->watch, "look again every so many SECONDS (default: 2), until Ctrl-C")
      .optional_value("2")
      .check(real_number(0.1, 86400.0))
      .type_name("[SECONDS]");
  command.flag("--json", options->json, "print one JSON object a look, with all figures");
  command
      .option("--socket", options->connection.socket,
              "the daemon's socket (default: $MILLRACE_SOCKET, else " + std::string(kDefaultSocket) + ")")
      .check(not_empty())
      .group("Daemon");
  command.footer(
      "It looks back over 20 seconds. A program that waits for less than 5 % of its time is told that Millrace is not "
      "what bounds it. Each cause has its share of the waiting, and what the program would reach without it. What the "
      "codes mean, and what to do: daemon/doc/why.md.\n"
      "\n"
      "One of a busy host says:\n"
      "   68 %  other_programs: 4110 images/s without it\n"
      "         Other programs, your own among them, use 79 % of the processors...\n"
      "         To do: Fewer threads in the other programs (OMP_NUM_THREADS...\n"
      "\n"
      "Exit status: 0 it was told, 1 the session is gone, 3 no daemon.\n"
      "\n"
      "Examples:\n  millrace why\n  millrace why 3 --watch\n  millrace why --json | jq "
      "'.sessions[0].findings[0].code'");
  command.callback([options, &chosen] { chosen = [options] { return why(*options); }; });
}

}  // namespace millrace::cli
