// millrace: the command line of the image preprocessing daemon. One file a subcommand; this one puts them together.
#include <cerrno>
#include <cstdio>
#include <optional>
#include <string>

#include "client/cli/command.h"
#include "client/cli/command_line.h"
#include "millrace/client.h"

namespace millrace::cli {
namespace {

constexpr const char* kMillraceFooter =
    "Examples:\n"
    "  millrace preview /data/train -o sheet.png        look at what the training recipe does to 16 images\n"
    "  millrace replay 17.ticket -o 17.png              make one tensor of a training run again, to the bit\n"
    "  millrace run --dataset /data/train --shuffle     one epoch through it, with a progress bar\n"
    "  millrace run --private --dataset ~/pictures      the same without a running service\n"
    "  millrace stats --watch                           what the daemon is doing\n"
    "  millrace top                                     who has sessions, and what each one waits for\n"
    "  millrace trace 10 -o trace.pftrace               record it, for a picture at https://ui.perfetto.dev\n"
    "  millrace why                                     why a program waits for its images, and what to change\n"
    "  millrace cache warm /data/train                  pack it once now, for the first epoch to be faster\n"
    "  millrace convert --to packed /data/train OUT     the same, kept as files, and back to the same JPEG files\n"
    "  millrace admin status                            who holds what, and what the settings file says otherwise\n"
    "  millrace web                                     metrics for Prometheus, and a page: http://localhost:9464/\n"
    "  millrace doctor                                  what is in the way, and what to do about it\n"
    "\n"
    "The daemon: --socket PATH, else $MILLRACE_SOCKET, else /run/millrace/millrace.sock; or --private.\n"
    "Exit codes:\n"
    "  0    fine; bad samples that were skipped or replaced included\n"
    "  1    failed: the message says why; no image came out at all included\n"
    "  2    wrong usage: nothing was done\n"
    "  3    no daemon there, or it is stopping, or it went away\n"
    "  130  interrupted: what was done is printed and the position saved";

// Output that nobody got is no success.
int flushed(int code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  std::fprintf(stderr, "millrace: %s\n", errno_error("writing the output", errno).message.c_str());
  return code == kFine ? static_cast<int>(kFailed) : code;
}

int run_line(int argc, char** argv) {
  CommandLine line("millrace", "Image preprocessing by the host's Millrace daemon.", "millrace " + library_version());
  const Command app = line.top();
  app.require_subcommand();
  app.footer(kMillraceFooter);
  Chosen chosen;
  add_run(app, chosen);
  add_preview(app, chosen);
  add_replay(app, chosen);
  add_stats(app, chosen);
  add_top(app, chosen);
  add_trace(app, chosen);
  add_why(app, chosen);
  add_devices(app, chosen);
  add_doctor(app, chosen);
  add_cache(app, chosen);
  add_index(app, chosen);
  add_convert(app, chosen);
  add_ping(app, chosen);
  add_admin(app, chosen);
  add_web(app, chosen);
  const std::optional<int> ended = line.parse(argc, argv);
  return flushed(ended ? *ended : chosen());
}

}  // namespace
}  // namespace millrace::cli

int main(int argc, char** argv) {
  return millrace::cli::run_line(argc, argv);
}
