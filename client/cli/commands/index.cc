// millrace index: seek indexes of a dataset's JPEG files, made and checked by passes of the daemon over it, so that
// only those files are read that the caller may read.
#include <cstdio>
#include <memory>

#include "client/cli/connection.h"
#include "client/cli/extension_option.h"
#include "client/cli/folder.h"
#include "client/cli/folder_pass.h"
#include "client/cli/interrupt.h"
#include "client/cli/options.h"
#include "client/cli/text/index_counts.h"
#include "client/cli/text/json.h"
#include "client/cli/text/progress.h"
#include "proto/base/printable.h"

namespace millrace::cli {
namespace {

using Clock = std::chrono::steady_clock;

enum class Task { kBuild, kVerify, kStat };

struct IndexOptions {
  ConnectionOptions connection;
  std::string dataset;
  std::vector<std::string> extensions;
  bool json = false;
};

constexpr std::chrono::seconds kWriteWithin{20};

constexpr const char* kIndexFooter =
    "The daemon makes indexes by itself when it first decodes a file, keeps them in memory (cache.memory) and "
    "in its state directory (daemon.state_dir, cache.disk; with --private $XDG_STATE_HOME/millrace or "
    "~/.local/state/millrace), and notices when a file or an index changed. Files of other kinds get none: PNG, WebP, "
    "JPEG that is progressive or below 4 KiB. Figures are the daemon's: what other sessions decode meanwhile "
    "counts.\n\n"
    "Examples:\n"
    "  millrace index build /data/train\n"
    "  millrace index verify /data/train --json";

// Whole images, for every entry to be made and met; or a look at the top, which an index makes no longer than it is.
Recipe recipe_for(Task task) {
  Recipe recipe = tiny_recipe();
  if (task == Task::kStat) recipe.crop = GridCell{.columns = 1, .rows = 16};
  return recipe;
}

struct Outcome {
  std::uint64_t images = 0;
  std::uint64_t bad = 0;
  IndexCounts counts;
  std::chrono::duration<double> elapsed{};
};

// The daemon writes indexes half a second after they are made, many at once. Its figures when it has; or as they are
// when it does not get on, or somebody else has it make more and more.
Result<IndexCounts> once_written(Client& client) {
  const auto deadline = Clock::now() + kWriteWithin;
  for (;;) {
    MILLRACE_TRY(const Statistics statistics, client.statistics());
    const IndexCounts counts = index_counts(statistics);
    if (counts.pending <= 0 || Clock::now() >= deadline || !wait_unless_interrupted(kLookEvery)) return counts;
  }
}

Result<Outcome> pass(Client& client, const IndexOptions& options, Task task, const char* title) {
  MILLRACE_TRY(const Statistics before, client.statistics());
  MILLRACE_TRY(const PassOutcome made, pass_over(client, {.session = "millrace index",
                                                          .dataset = {.path = options.dataset},
                                                          .extensions = options.extensions,
                                                          .recipe = recipe_for(task),
                                                          .cache = CacheUse::kIndex,
                                                          .title = title,
                                                          .quiet = options.json}));
  MILLRACE_TRY(const IndexCounts after, once_written(client));
  return Outcome{made.images, made.bad, since(index_counts(before), after), made.elapsed};
}

void print_outcome(Task task, const Outcome& outcome) {
  const IndexCounts& counts = outcome.counts;
  const char* const made = task == Task::kStat ? "without one" : "made";
  const double others = static_cast<double>(outcome.images) - counts.hits - counts.misses;
  std::printf("%s images in %.1f s (%s bad): %s with an index, %s %s, %s found wrong, %s of other kinds\n",
              grouped(outcome.images).c_str(), outcome.elapsed.count(), grouped(outcome.bad).c_str(),
              count_text(counts.hits).c_str(), count_text(counts.misses).c_str(), made,
              count_text(counts.rejected).c_str(), count_text(others).c_str());
  std::printf("of all datasets: %s indexes in memory (%s), %s in the state directory (%s)",
              count_text(counts.entries).c_str(), bytes_text(counts.bytes).c_str(),
              count_text(counts.disk_entries).c_str(), bytes_text(counts.disk_bytes).c_str());
  if (counts.pending > 0) std::printf(", %s still to be written there", count_text(counts.pending).c_str());
  std::printf("\n");
}

// Why indexes go when the daemon stops; empty: they do not.
std::string fleeting(Client& client) {
  const auto statistics = client.statistics();
  return statistics ? statistics->indexes_not_kept : "";
}

void print_outcome_json(const Outcome& outcome) {
  const IndexCounts& counts = outcome.counts;
  Json json;
  json.begin_object().member("images", outcome.images).member("bad", outcome.bad);
  json.member("seconds", outcome.elapsed.count()).member("with_index", counts.hits);
  json.member("without_index", counts.misses).member("wrong", counts.rejected);
  json.member("memory_entries", counts.entries).member("memory_bytes", counts.bytes);
  json.member("disk_entries", counts.disk_entries).member("disk_bytes", counts.disk_bytes);
  json.member("disk_pending", counts.pending).end_object();
  std::printf("%s\n", json.text().c_str());
}

int run_task(IndexOptions& options, Task task, const char* title) {
  const Result<std::string> folder = canonical_folder("", options.dataset);
  if (!folder) return report(folder.error());
  options.dataset = *folder;
  watch_for_interrupt();
  auto connection = open_connection(options.connection, {options.dataset});
  if (!connection) return report(connection.error());
  const auto outcome = pass(connection->client, options, task, title);
  if (!outcome) return report(outcome.error());
  options.json ? print_outcome_json(*outcome) : print_outcome(task, *outcome);
  std::fflush(stdout);
  if (const std::string why = fleeting(connection->client); task == Task::kBuild && !why.empty())
    std::fprintf(stderr, "millrace: the indexes go when the daemon stops, for they are in memory only: %s\n",
                 printable(why).c_str());
  if (interrupted()) return std::fputs("millrace: interrupted\n", stderr), kInterrupted;
  if (outcome->images == 0) return report_nothing(outcome->bad);
  return task == Task::kVerify && outcome->counts.rejected > 0 ? kFailed : kFine;
}

void add_task(Command parent, Chosen& chosen, Task task, const char* name, const char* help) {
  auto options = std::make_shared<IndexOptions>();  // shared with the callback
  const Command command = parent.subcommand(name, help);
  command.option("dataset", options->dataset, "the folder").required().check(not_empty());
  add_extension_option(command, options->extensions);
  command.flag("--json", options->json, "print one JSON object at the end");
  add_connection_options(command, options->connection);
  command.callback([options, task, name, &chosen] {
    require_agree(options->extensions);
    chosen = [options, task, name] { return run_task(*options, task, name); };
  });
}

}  // namespace

void add_index(Command app, Chosen& chosen) {
  const Command command =
      app.subcommand("index", "Seek indexes alone, of what `millrace cache` is about: the older name.");
  command.require_subcommand();
  command.footer(kIndexFooter);  // before its subcommands, which inherit it
  add_task(command, chosen, Task::kBuild, "build",
           "Decode every file once, so that the next pass over it is the faster one.");
  add_task(command, chosen, Task::kVerify, "verify",
           "Decode every file by its whole index; 1 if any was wrong. Those that have none get one.");
  add_task(command, chosen, Task::kStat, "stat", "How many files have an index? Looks at the top of each.");
}

}  // namespace millrace::cli
