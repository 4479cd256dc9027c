// millrace doctor: does everything that Millrace needs work here, and what is in force? With a daemon or without.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>

#include "client/cli/commands/host_checks.h"
#include "client/cli/connection.h"
#include "client/cli/options.h"
#include "client/cli/text/findings.h"
#include "client/cli/text/progress.h"
#include "proto/base/printable.h"

namespace millrace::cli {
namespace {

struct DoctorOptions {
  ConnectionOptions connection;
  bool json = false;
};

Finding daemon_itself(const Statistics& statistics, const Client& client) {
  const auto up = std::chrono::duration_cast<std::chrono::seconds>(statistics.uptime);
  Finding finding{"daemon", "millraced " + statistics.daemon_version + ", pid " + std::to_string(statistics.pid) +
                                ", up " + clock_text(up) + ", at unix:" + client.socket()};
  if (statistics.daemon_version == library_version()) return finding;
  finding.verdict = Verdict::kNote;
  finding.advice = "this program is " + library_version() + ": install the same version of both";
  return finding;
}

Finding settings_of(const Statistics& statistics) {
  if (statistics.settings_file.empty()) return {"settings", "no file: defaults, and the daemon's command line"};
  return {"settings", statistics.settings_file};
}

Finding root_of(const Statistics& statistics, const std::string& root) {
  const std::vector<std::string>& missing = statistics.missing_roots;
  const std::string name = printable(root);
  const bool open_to_me = ::access(root.c_str(), R_OK | X_OK) == 0;
  const bool not_here = !open_to_me && (errno == ENOENT || errno == ENOTDIR);
  // With an opener the daemon looks for a root when somebody asks for what lies beneath.
  if (!not_here && std::find(missing.begin(), missing.end(), root) == missing.end()) {
    if (open_to_me) return {"files", name + ": you may list and read it"};
    return {"files", name + ": you may not list it, so neither does the daemon for you", Verdict::kNote,
            "ask for read and search permission on the folder"};
  }
  if (open_to_me)
    return {"files", name + ": it was not there when the daemon last looked, and is now", Verdict::kNote,
            "there is nothing to do: it looks again as soon as a path beneath it is asked for"};
  return {"files", name + ": it is not there", Verdict::kNote,
          "mount or make it, or take it out of files.roots; the daemon needs no restart when it comes"};
}

// `own`: this program has started it, for these checks alone.
void add_roots(const Statistics& statistics, bool own, Findings& findings) {
  if (statistics.roots.empty() && own) {
    findings.push_back({"files", "none: the daemon of --private was started for these checks, without a folder"});
  } else if (statistics.roots.empty()) {
    findings.push_back({"files", "the daemon reads none", Verdict::kNote,
                        "set files.roots in its settings, or send it the images' bytes"});
  }
  for (const std::string& root : statistics.roots) findings.push_back(root_of(statistics, root));
}

void add_devices(const std::vector<Device>& devices, Findings& findings) {
  for (const Device& device : devices) {
    Finding finding{"backend " + device.backend, device.name + ", " + std::to_string(device.lanes) + " lanes" +
                                                     (device.detail.empty() ? "" : ", " + device.detail)};
    if (!device.ready) {
      finding.verdict = Verdict::kProblem;
      finding.advice =
          "its device is lost; the daemon's log says why. it is taken up again by itself when it can be had";
    }
    findings.push_back(std::move(finding));
    if (!device.instruction_sets.empty()) findings.push_back(check_instruction_sets(device.instruction_sets));
    for (const DeviceProperty& property : device.properties) findings.push_back({"  " + property.name, property.value});
  }
}

// The way of every tensor: descriptors over the hand-off socket, memory of both processes.
Result<Session> session_in(Client& client, const std::string& memory) {
  return client.open_session(
      {.name = "doctor", .slots = 1, .batch = 1, .recipe = Recipe::train(224), .memory = memory});
}

Finding hand_over(Client& client) {
  const Result<Session> session = session_in(client, kHostMemory);
  if (session) return {"hand-over", "a session opens, its memory is mapped"};
  return {"hand-over", session.error().message, Verdict::kProblem,
          "no session can be opened, so nothing can be made: see the message"};
}

// The same by a GPU's memory, of which a session takes 2 MiB until this process ends.
Finding hand_over(Client& client, const std::string& gpu) {
  const Result<Session> session = session_in(client, gpu);
  if (session) return {"hand-over on " + gpu, "a session opens, its memory on the GPU is mapped"};
  return {"hand-over on " + gpu, session.error().message, Verdict::kNote,
          "tensors come by the host's memory only, as far as this user and this environment go: see the message, and "
          "daemon/doc/gpu_sharing.md"};
}

void check_daemon(const ConnectionOptions& options, Findings& findings) {
  auto connection = open_connection(options);
  if (!connection) {
    findings.push_back({"daemon", connection.error().message, Verdict::kProblem,
                        options.own
                            ? "what is said of the host above needs none"
                            : "what is said of the host above needs none; `millrace doctor --private` tries one of "
                              "its own"});
    return;
  }
  Client& client = connection->client;
  const auto statistics = client.statistics();
  const auto devices = client.devices();
  if (!statistics || !devices) {
    const Error& error = statistics ? devices.error() : statistics.error();
    findings.push_back({"daemon", error.message, Verdict::kProblem, "it listens but does not answer: look at its log"});
    return;
  }
  findings.push_back(daemon_itself(*statistics, client));
  findings.push_back(settings_of(*statistics));
  add_devices(*devices, findings);
  const bool has_gpu = std::any_of(devices->begin(), devices->end(),
                                   [](const Device& device) { return device.backend.starts_with("cuda:"); });
  for (Finding& finding : check_gpus(has_gpu)) findings.push_back(std::move(finding));
  const bool wants_gpu = !options.cuda.empty() && options.cuda != "no";
  if (wants_gpu && !has_gpu)
    findings.push_back({"GPUs", "the daemon finds none that it can use", Verdict::kNote,
                        "millrace-cuda, on a terminal, says what it sees, or why nothing; daemon/doc/gpu.md"});
  add_roots(*statistics, options.own, findings);
  findings.push_back(hand_over(client));
  for (const Device& device : *devices) {
    if (device.ready && device.backend.starts_with("cuda:")) findings.push_back(hand_over(client, device.backend));
  }
}

int doctor(const DoctorOptions& options) {
  Findings findings = check_host();
  for (Finding& finding : check_compute_modes()) findings.push_back(std::move(finding));
  check_daemon(options.connection, findings);
  if (options.json) {
    std::printf("%s\n", findings_json(findings).c_str());
  } else {
    std::printf("%s", findings_text(findings).c_str());
    std::printf("\n%s\n", healthy(findings) ? "Nothing is in the way." : "There are problems, see above.");
  }
  return healthy(findings) ? kFine : kFailed;
}

}  // namespace

void add_doctor(Command app, Chosen& chosen) {
  auto options = std::make_shared<DoctorOptions>();  // shared with the callback
  const Command command = app.subcommand("doctor", "Does everything that Millrace needs work here?");
  command.flag("--json", options->json, "print one JSON object");
  add_connection_options(command, options->connection);
  command.footer(
      "Looks at the host first, which needs no daemon, then at the daemon: settings, backends, how they decode "
      "and where their lanes are, folders, hand-over, also by the memory of its GPUs. Exit status: 0 no problem (notes "
      "are none), 1 a problem.\n\n"
      "Examples:\n  millrace doctor\n  millrace doctor --private       what this machine offers, without a running "
      "service\n  millrace doctor --json | jq '.findings[] | select(.verdict != \"fine\")'");
  command.callback([options, &chosen] { chosen = [options] { return doctor(*options); }; });
}

}  // namespace millrace::cli
