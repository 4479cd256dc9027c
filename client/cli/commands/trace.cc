// millrace trace: a recording of what the daemon does, for Perfetto's user interface.
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>

#include "client/cli/connection.h"
#include "client/cli/interrupt.h"
#include "client/cli/options.h"
#include "client/cli/text/progress.h"
#include "client/cli/text/waiting_line.h"
#include "client/cli/trace/packet_file.h"
#include "client/cli/trace/trace_call.h"
#include "proto/base/printable.h"

namespace millrace::cli {
namespace {

struct TraceOptions {
  std::string socket;
  std::optional<double> seconds;
  std::string file;
  std::uint64_t session = 0;
};

std::string tenths(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", seconds);
  return text;
}

int record_trace(const TraceOptions& options) {
  watch_for_interrupt();
  auto call = TraceCall::connect(options.socket);
  if (!call) return report(call.error());
  std::unique_ptr<PacketFile> file;  // made with the first part: a refused recording leaves one that is there alone
  const auto take = [&](const std::string& packets) -> Result<void> {
    if (!file) {
      MILLRACE_TRY(file, PacketFile::create(options.file));
    }
    return file->append(packets);
  };
  const auto began = std::chrono::steady_clock::now();
  Result<void> recorded;
  {
    const WaitingLine waiting("recording " + tenths(*options.seconds) + ", to " + printable(options.file));
    recorded = call->record({.seconds = *options.seconds, .session = options.session},
                            {.take = take, .goes_on = [] { return !interrupted(); }});
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - began;
  const std::uint64_t bytes = file ? file->bytes() : 0;
  if (bytes > 0)
    std::printf("%s: %s, %s; open it at https://ui.perfetto.dev\n", printable(options.file).c_str(),
                tenths(elapsed.count()).c_str(), to_text(Bytes{bytes}).c_str());
  std::fflush(stdout);
  if (!recorded) return report(recorded.error());
  if (interrupted()) return std::fputs("millrace: interrupted\n", stderr), kInterrupted;
  return kFine;
}

}  // namespace

void add_trace(Command app, Chosen& chosen) {
  auto options = std::make_shared<TraceOptions>();  // shared with the callback
  const Command command =
      app.subcommand("trace", "Record for so many seconds what the daemon does, as a picture of time.");
  command.option("SECONDS", options->seconds, "how long").required().check(real_number(0.1, 600));
  command.option("-o,--output", options->file, "the file; one that is there is written anew")
      .required()
      .check(not_empty())
      .type_name("FILE");
  command.option("--session", options->session, "of this session alone, by its number in `millrace stats`")
      .check(whole_number(1))
      .type_name("ID");
  command
      .option("--socket", options->socket,
              "the daemon's socket (default: $MILLRACE_SOCKET, else " + std::string(kDefaultSocket) + ")")
      .check(not_empty())
      .group("Daemon");
  command.footer(
      "The file has your own sessions; an administrator's has everybody's (access.admins). Drag it into "
      "https://ui.perfetto.dev, which reads it in the browser and sends it nowhere.\n\n"
      "What to look for:\n"
      "  session, state     what the oldest batch waits for at each moment: `making` means that lanes are busy with "
      "it, `reading` that a disk is, `client` that all slots are full and the program is the slow one\n"
      "  session, batches   each batch through its stages; long `lane_turn` means that others have the lanes\n"
      "  mr-lane-0, ...     which images a lane makes, and where it has nothing to do\n"
      "  mr-fetch-0, ...    how long reads take, and of how many bytes\n"
      "  counters           slots, budgets and queues; `events lost` above 0 means that some are missing there\n\n"
      "Recording costs the daemon next to nothing. Ctrl-C ends it, and the file has what was recorded. `millrace run "
      "--trace FILE` adds when the program itself waits.\n\n"
      "Examples:\n"
      "  millrace trace 10 -o trace.pftrace\n"
      "  millrace trace 60 -o train.pftrace --session 17");
  command.callback([options, &chosen] { chosen = [options] { return record_trace(*options); }; });
}

}  // namespace millrace::cli
