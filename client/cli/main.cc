// millrace: the command line of the image preprocessing daemon. One file a subcommand; this one puts them together.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "client/cli/command.h"
#include "client/cli/help_format.h"
#include "millrace/client.h"

namespace millrace::cli {
namespace {

constexpr const char* kFooter =
    "Examples:\n"
    "  millrace preview /data/train -o sheet.png        look at what the training recipe does to 16 images\n"
    "  millrace run --dataset /data/train --shuffle     one epoch through it, with a progress bar\n"
    "  millrace run --private --dataset ~/pictures      the same without a running service\n"
    "  millrace stats --watch                           what the daemon is doing\n"
    "  millrace index build /data/train                 decode it once now, for the first epoch to be faster\n"
    "  millrace doctor                                  what is in the way, and what to do about it\n"
    "\n"
    "The daemon: --socket PATH, else $MILLRACE_SOCKET, else /run/millrace/millrace.sock; or --private.\n"
    "Exit codes: 0 fine (skipped bad samples included), 1 failed, 2 wrong usage, 3 daemon unreachable, 130 "
    "interrupted.";

int run(int argc, char** argv) {
  CLI::App app("Image preprocessing by the host's Millrace daemon.", "millrace");
  app.set_version_flag("--version", "millrace " + library_version());
  app.formatter(std::make_shared<HelpFormat>());  // subcommands inherit it
  app.require_subcommand(1);
  app.footer(kFooter);
  app.failure_message([](const CLI::App*, const CLI::Error& error) {
    return "millrace: " + std::string(error.what()) +
           "\nmillrace: `millrace --help` and `millrace COMMAND --help` show what there is\n";
  });
  Chosen chosen;
  add_run(app, chosen);
  add_preview(app, chosen);
  add_stats(app, chosen);
  add_devices(app, chosen);
  add_doctor(app, chosen);
  add_index(app, chosen);
  add_ping(app, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kFine : kUsage;  // --help and --version come this way too
  }
  return chosen();
}

}  // namespace
}  // namespace millrace::cli

int main(int argc, char** argv) {
  return millrace::cli::run(argc, argv);
}
