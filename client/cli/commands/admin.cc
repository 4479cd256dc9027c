// millrace admin: orders about the running daemon, for its administrators.
#include <algorithm>
#include <cstdio>
#include <limits>
#include <memory>

#include "client/cli/commands/admin_calls.h"
#include "client/cli/connection.h"
#include "client/cli/interrupt.h"
#include "client/cli/options.h"
#include "client/cli/text/admin_text.h"
#include "client/cli/text/json.h"
#include "client/cli/text/progress.h"
#include "proto/base/printable.h"

namespace millrace::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct AdminOptions {
  std::string socket;
  bool json = false;
  bool stop = false;          // drain
  std::uint64_t session = 0;  // close
};

constexpr const char* kAdminFooter =
    "For root, the daemon's own user, and those of access.admins in its settings; the log says who gave which "
    "order.\n\n"
    "Examples:\n"
    "  millrace admin status                 who holds what; what the settings file says otherwise\n"
    "  millrace admin reload                 after editing the settings file\n"
    "  millrace admin drain --stop           before maintenance: finish what is under way, then end\n"
    "  millrace admin close 17               end one session";

void add_changes(const google::protobuf::RepeatedPtrField<v1::SettingChange>& changes, std::string_view name,
                 Json& json) {
  json.key(name).begin_array();
  for (const v1::SettingChange& change : changes) {
    json.begin_object().member("name", change.name()).member("in_force", change.in_force());
    json.member("in_file", change.in_file()).end_object();
  }
  json.end_array();
}

void add_complaints(const google::protobuf::RepeatedPtrField<std::string>& complaints, Json& json) {
  json.key("complaints").begin_array();
  for (const std::string& line : complaints) json.value(line);
  json.end_array();
}

void add_uses(const google::protobuf::RepeatedPtrField<v1::ResourceUse>& uses, std::string_view name, Json& json) {
  json.key(name).begin_array();
  for (const v1::ResourceUse& use : uses) {
    json.begin_object().member("name", use.name()).member("bytes", use.bytes()).member("in_use", use.in_use());
    if (use.bound() > 0) json.member("bound", use.bound());
    json.end_object();
  }
  json.end_array();
}

int print_reply(const Json& json) {
  std::printf("%s\n", json.text().c_str());
  return kFine;
}

int reload(const AdminOptions& options) {
  auto calls = AdminCalls::connect(options.socket);
  if (!calls) return report(calls.error());
  const auto reply = calls->reload();
  if (!reply) return report(reply.error());
  if (options.json) {
    Json json;
    json.begin_object().member("file", reply->file());
    add_complaints(reply->complaints(), json);
    add_changes(reply->changed(), "changed", json);
    add_changes(reply->at_start(), "at_start", json);
    json.key("remarks").begin_array();
    for (const std::string& remark : reply->remarks()) json.value(remark);
    json.end_array();
    print_reply(json.member("unchanged", std::uint64_t{reply->unchanged()}).end_object());
  } else if (reply->complaints().empty()) {
    std::printf("%s", reload_text(*reply).c_str());
  } else {
    std::fprintf(stderr, "millrace: the settings were not taken, and nothing has changed:\n");
    for (const std::string& line : reply->complaints()) std::fprintf(stderr, "  %s\n", printable(line).c_str());
  }
  return reply->complaints().empty() ? kFine : kFailed;
}

// What a drain has come to, in words and as an exit status.
int say(const v1::DrainProgress& told, const AdminOptions& options) {
  if (told.resumed()) return std::fprintf(stderr, "millrace: somebody has it take new work again\n"), kFailed;
  const bool idle = told.batches() == 0;
  if (options.json) {
    Json json;
    json.begin_object().member("drained", idle).member("batches", told.batches()).member("sessions", told.sessions());
    print_reply(json.member("stops", options.stop).end_object());
  } else if (idle) {
    std::printf("drained: no batch is under way, %s sessions are open; %s\n", grouped(told.sessions()).c_str(),
                options.stop ? "the daemon ends" : "it takes nothing new until `millrace admin resume`");
  } else {
    std::printf("daemon.drain_seconds are over, and %s batches are still under way; %s\n",
                grouped(told.batches()).c_str(),
                options.stop ? "the daemon ends all the same" : "it takes nothing new until `millrace admin resume`");
  }
  return idle ? kFine : kFailed;
}

int drain(const AdminOptions& options) {
  watch_for_interrupt();
  auto calls = AdminCalls::connect(options.socket);
  if (!calls) return report(calls.error());
  Progress progress(progress_style(options.json));
  const auto began = Clock::now();
  std::uint64_t most = 0;
  const auto goes_on = [&](const v1::DrainProgress& told) {
    most = std::max(most, told.batches());
    if (most > 0)
      progress.update({.title = "draining, " + grouped(told.sessions()) + " sessions",
                       .what = "batches",
                       .done = most - told.batches(),
                       .total = most,
                       .elapsed = Clock::now() - began});
    return !interrupted();
  };
  const auto told = calls->drain(options.stop, goes_on);
  progress.clear();
  if (interrupted()) {
    std::fprintf(stderr, "millrace: interrupted; the daemon goes on draining%s; `millrace admin resume` ends that\n",
                 options.stop ? ", and stops then" : "");
    return kInterrupted;
  }
  if (!told) return report(told.error());
  return say(*told, options);
}

int resume(const AdminOptions& options) {
  auto calls = AdminCalls::connect(options.socket);
  if (!calls) return report(calls.error());
  const auto reply = calls->resume();
  if (!reply) return report(reply.error());
  if (options.json) return print_reply(Json().begin_object().member("drained", reply->drained()).end_object());
  std::printf(reply->drained() ? "the daemon takes new work again\n" : "it did not drain\n");
  return kFine;
}

int close(const AdminOptions& options) {
  auto calls = AdminCalls::connect(options.socket);
  if (!calls) return report(calls.error());
  const auto closed = calls->close_session(options.session);
  if (!closed) return report(closed.error());
  if (options.json) {
    Json json;
    json.begin_object().member("uid", std::uint64_t{closed->uid()});
    return print_reply(
        json.member("pid", static_cast<std::uint64_t>(closed->pid())).member("name", closed->name()).end_object());
  }
  const std::string name = closed->name().empty() ? "" : " (\"" + printable(closed->name()) + "\")";
  std::printf("session %s of user %u, pid %d%s is closed\n", std::to_string(options.session).c_str(), closed->uid(),
              closed->pid(), name.c_str());
  return kFine;
}

Json status_json(const v1::AdminStatusReply& reply) {
  Json json;
  json.begin_object().member("version", reply.daemon_version()).member("pid", static_cast<std::uint64_t>(reply.pid()));
  json.member("uptime_seconds", reply.uptime_seconds()).member("draining", reply.draining());
  json.member("stops", reply.stops()).member("batches", reply.batches());
  json.member("settings_file", reply.settings_file());
  add_complaints(reply.complaints(), json);
  add_changes(reply.reloadable(), "reloadable", json);
  add_changes(reply.at_start(), "at_start", json);
  add_uses(reply.in_use(), "in_use", json);
  json.key("users").begin_array();
  for (const v1::UserUse& user : reply.users()) {
    json.begin_object().member("uid", std::uint64_t{user.uid()});
    add_uses(user.holds(), "holds", json);
    json.end_object();
  }
  json.end_array().key("sessions").begin_array();
  for (const v1::SessionStatistics& session : reply.sessions()) {
    json.begin_object().member("id", session.session_id()).member("name", session.name());
    json.member("uid", std::uint64_t{session.uid()}).member("pid", static_cast<std::uint64_t>(session.pid()));
    json.member("segment_bytes", session.segment_bytes()).member("batches", session.batches());
    json.member("samples", session.samples()).member("bad_samples", session.bad_samples());
    json.member("lane_seconds", session.lane_seconds()).end_object();
  }
  json.end_array().end_object();
  return json;
}

int status(const AdminOptions& options) {
  auto calls = AdminCalls::connect(options.socket);
  if (!calls) return report(calls.error());
  const auto reply = calls->status();
  if (!reply) return report(reply.error());
  if (options.json) return print_reply(status_json(*reply));
  std::printf("%s", status_text(*reply).c_str());
  return kFine;
}

// A subcommand of it that `run`s.
Command add(Command admin, Chosen& chosen, const char* name, const char* help, int (*run)(const AdminOptions&),
            const std::shared_ptr<AdminOptions>& options) {
  const Command command = admin.subcommand(name, help);
  command.flag("--json", options->json, "print one JSON object");
  command
      .option("--socket", options->socket,
              "the daemon's socket (default: $MILLRACE_SOCKET, else " + std::string(kDefaultSocket) + ")")
      .group("Daemon")
      .check(not_empty());
  command.callback([options, run, &chosen] { chosen = [options, run] { return run(*options); }; });
  return command;
}

}  // namespace

void add_admin(Command app, Chosen& chosen) {
  const Command admin = app.subcommand("admin", "Orders about the running daemon, for its administrators.");
  admin.require_subcommand();
  admin.footer(kAdminFooter);                                            // before its subcommands, which inherit it
  const auto options = [] { return std::make_shared<AdminOptions>(); };  // shared with the callback
  add(admin, chosen, "status", "What it is at, who holds how much, and what its settings file says otherwise.", status,
      options());
  add(admin, chosen, "reload", "Read the settings file again; what can change while it runs is in force at once.",
      reload, options())
      .footer(
          "All or nothing: a file with a mistake in it changes nothing, and its lines are told. What cannot change "
          "while "
          "the daemon runs is named, with what is in force and what the file says. SIGHUP does the same.\n\n"
          "Exit status: 0 read, 1 not taken, or not allowed.\n\n"
          "Examples:\n"
          "  millrace admin reload\n"
          "  millrace admin reload --json | jq -r .at_start[].name      what takes a restart");
  const auto draining = options();
  const Command drain_command =
      add(admin, chosen, "drain", "Take no new work, and finish what is under way.", drain, draining);
  drain_command.flag("--stop", draining->stop, "end the daemon afterwards, with status 0");
  drain_command.footer(
      "New sessions and batches are refused, and its health is NOT_SERVING. Batches that wait for a slot are told so, "
      "and "
      "nothing of them is lost: an epoch goes on from its position. It waits as long as daemon.drain_seconds says; "
      "Ctrl-C ends the waiting and not the draining.\n\n"
      "Exit status: 0 drained, 1 not in time, or not allowed.\n\n"
      "Examples:\n"
      "  millrace admin drain             until `millrace admin resume`\n"
      "  millrace admin drain --stop      before maintenance");
  add(admin, chosen, "resume", "Take new work again, after `drain`.", resume, options());
  const auto closing = options();
  add(admin, chosen, "close", "End a session: its client is told so, its memory goes.", close, closing)
      .option("session", closing->session, "its number, as `millrace admin status` shows it")
      .required()
      .check(whole_number(1, std::numeric_limits<std::int64_t>::max()));
}

}  // namespace millrace::cli
