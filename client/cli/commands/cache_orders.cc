// millrace cache drop, millrace cache verify: orders about what the daemon keeps, for administrators.
#include <cstdio>
#include <memory>

#include "client/cli/connection.h"
#include "client/cli/interrupt.h"
#include "client/cli/options.h"
#include "client/cli/text/json.h"
#include "client/cli/text/progress.h"

namespace millrace::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct CacheOrderOptions {
  ConnectionOptions connection;
  bool memory = false, disk = false;  // neither: both
  bool json = false;
};

void print_dropped(const DropCache& what, const DroppedCache& dropped) {
  if (what.memory)
    std::printf("memory: %s entries dropped (%s)\n", grouped(dropped.memory_entries).c_str(),
                to_text(dropped.memory_bytes).c_str());
  if (what.disk)
    std::printf("disk: %s entries dropped (%s)\n", grouped(dropped.disk_entries).c_str(),
                to_text(dropped.disk_bytes).c_str());
  if (dropped.disk_entries_left > 0)
    std::printf("disk: %s entries stay, for another daemon is writing to the same files\n",
                grouped(dropped.disk_entries_left).c_str());
}

int drop(const CacheOrderOptions& options) {
  auto connection = open_connection(options.connection);
  if (!connection) return report(connection.error());
  const bool both = !options.memory && !options.disk;
  const DropCache what{.memory = both || options.memory, .disk = both || options.disk};
  const auto dropped = connection->client.drop_cache(what);
  if (!dropped) return report(dropped.error());
  if (!options.json) return print_dropped(what, *dropped), kFine;
  Json json;
  json.begin_object()
      .member("memory_entries", dropped->memory_entries)
      .member("memory_bytes", dropped->memory_bytes.count);
  json.member("disk_entries", dropped->disk_entries).member("disk_bytes", dropped->disk_bytes.count);
  json.member("disk_entries_left", dropped->disk_entries_left).end_object();
  std::printf("%s\n", json.text().c_str());
  return kFine;
}

void print_verified(const VerifiedCache& verified, std::chrono::duration<double> elapsed) {
  if (verified.entries == 0) return static_cast<void>(std::printf("there is nothing on disk\n"));
  std::printf("%s entries on disk read in %.1f s: ", grouped(verified.entries).c_str(), elapsed.count());
  verified.wrong == 0
      ? std::printf("all as they were written\n")
      : std::printf("%s not as they were written, and forgotten; they are made again when they are wanted\n",
                    grouped(verified.wrong).c_str());
}

int verify(const CacheOrderOptions& options) {
  watch_for_interrupt();
  auto connection = open_connection(options.connection);
  if (!connection) return report(connection.error());
  Progress progress(progress_style(options.json));
  const auto began = Clock::now();
  const auto goes_on = [&](const VerifiedCache& so_far) {
    if (so_far.all > 0)
      progress.update({.title = "verifying",
                       .what = "entries",
                       .done = so_far.entries,
                       .total = so_far.all,
                       .elapsed = Clock::now() - began});
    return !interrupted();
  };
  const auto verified = connection->client.verify_cache(goes_on);
  const std::chrono::duration<double> elapsed = Clock::now() - began;
  progress.clear();
  if (interrupted()) return std::fputs("millrace: interrupted\n", stderr), kInterrupted;
  if (!verified) return report(verified.error());
  if (options.json) {
    Json json;
    json.begin_object().member("entries", verified->entries).member("wrong", verified->wrong);
    std::printf("%s\n", json.member("seconds", elapsed.count()).end_object().text().c_str());
  } else {
    print_verified(*verified, elapsed);
  }
  return verified->wrong > 0 ? kFailed : kFine;
}

void add_common(Command command, CacheOrderOptions& options) {
  command.flag("--json", options.json, "print one JSON object at the end");
  add_connection_options(command, options.connection);
}

}  // namespace

void add_cache_orders(Command cache, Chosen& chosen) {
  auto dropping = std::make_shared<CacheOrderOptions>();  // shared with the callback
  const Command drop_command =
      cache.subcommand("drop", "Empty it, memory and disk, for all users. Administrators may (access.admins).");
  drop_command.flag("--memory", dropping->memory, "memory alone; what is on disk comes back when it is wanted");
  drop_command.flag("--disk", dropping->disk, "the disk alone; what is in memory stays until the daemon stops");
  add_common(drop_command, *dropping);
  drop_command.callback([dropping, &chosen] { chosen = [dropping] { return drop(*dropping); }; });

  drop_command.footer(
      "Pixels stay the same, the next epoch is slower. Images that are being made go on. Daemons that share the folder "
      "on "
      "disk lose it together.\n\n"
      "Examples:\n"
      "  millrace cache drop               as before the first epoch, for a benchmark\n"
      "  millrace cache drop --disk        gives the room on disk back");

  auto verifying = std::make_shared<CacheOrderOptions>();
  const Command verify_command = cache.subcommand(
      "verify",
      "Read all that is on disk, and forget what is not as it was written. Administrators may (access.admins).");
  add_common(verify_command, *verifying);
  verify_command.footer(
      "For after trouble with a disk: damage is found at an entry's next use as well, and costs time, never pixels. "
      "Sessions go on meanwhile; Ctrl-C ends it. Exit status: 0 all is well, 1 something was wrong, or it could not be "
      "done.\n\n"
      "Examples:\n"
      "  millrace cache verify\n"
      "  millrace cache verify --json | jq .wrong");
  verify_command.callback([verifying, &chosen] { chosen = [verifying] { return verify(*verifying); }; });
}

}  // namespace millrace::cli
