// millrace cache: what the daemon keeps of images to be faster the next time. `index` (index.cc) is its older name, from
// when it kept seek indexes alone.
#include <algorithm>
#include <cstdio>
#include <memory>

#include "client/cli/connection.h"
#include "client/cli/extension_option.h"
#include "client/cli/folder_pass.h"
#include "client/cli/interrupt.h"
#include "client/cli/list/named_dataset.h"
#include "client/cli/options.h"
#include "client/cli/text/cache_counts.h"
#include "client/cli/text/json.h"
#include "client/cli/text/progress.h"
#include "proto/base/printable.h"

namespace millrace::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct CacheOptions {
  ConnectionOptions connection;
  std::string dataset;
  NamedDataset named;
  std::vector<std::string> extensions;
  bool json = false;
};

constexpr std::size_t kPackedKind = 1;  // of kCacheKinds
constexpr std::chrono::seconds kSettleWithin{20};

constexpr const char* kCacheFooter =
    "The daemon keeps what makes the next epoch faster, as its [cache] settings allow: seek indexes of JPEG files from "
    "their first access on, their packed coefficients from the second, finished tensors of recipes without random "
    "crops. "
    "It notices when a file changed. Figures are the daemon's, of all sessions together. `millrace convert` keeps "
    "packed "
    "coefficients as files instead. A file is warmed for good once it has not changed for two seconds.\n\n"
    "Examples:\n"
    "  millrace cache warm /data/train        read and pack it once, so that the first epoch is a fast one\n"
    "  millrace cache warm /data/train --json | jq .not_packed      how many have no packed form, by the reason\n"
    "  millrace cache stat\n"
    "  millrace cache stat --json | jq .kinds.packed.bytes";

constexpr const char* kUnknown =
    "this daemon tells nothing about its cache: it is older than this program; `millrace index stat FOLDER` asks after "
    "seek indexes";

void print_counts(const CacheCounts& counts) {
  std::printf("%-8s %12s %10s %12s %10s %12s %11s %11s\n", "KIND", "IN MEMORY", "", "ON DISK", "", "USED", "SAVED",
              "TOOK");
  for (std::size_t i = 0; i < kCacheKinds.size(); ++i) {
    const CacheKind& kind = counts.kinds[i];
    std::printf("%-8s %12s %10s %12s %10s %12s %9.2f s %9.2f s\n", std::string(kCacheKinds[i]).c_str(),
                count_text(kind.entries).c_str(), bytes_text(kind.bytes).c_str(), count_text(kind.disk_entries).c_str(),
                bytes_text(kind.disk_bytes).c_str(), count_text(kind.hits).c_str(), kind.saved, kind.making);
  }
  std::printf("images that the CPU made from their file alone: %s; found wrong and forgotten: %s\n",
              count_text(counts.first).c_str(),
              count_text(counts.kinds[0].rejected + counts.kinds[1].rejected + counts.kinds[2].rejected).c_str());
  std::printf("SAVED and TOOK are lane time: what first accesses would have taken more, about, and the making\n");
}

void add_kinds(const CacheCounts& counts, Json& json) {
  json.key("kinds").begin_object();
  for (std::size_t i = 0; i < kCacheKinds.size(); ++i) {
    const CacheKind& kind = counts.kinds[i];
    json.key(std::string(kCacheKinds[i])).begin_object().member("hits", kind.hits).member("misses", kind.misses);
    json.member("wrong", kind.rejected).member("saved_seconds", kind.saved).member("making_seconds", kind.making);
    json.member("entries", kind.entries).member("bytes", kind.bytes);
    json.member("disk_entries", kind.disk_entries).member("disk_bytes", kind.disk_bytes).end_object();
  }
  json.end_object();
}

int stat(const CacheOptions& options) {
  auto connection = open_connection(options.connection);
  if (!connection) return report(connection.error());
  const auto statistics = connection->client.statistics();
  if (!statistics) return report(statistics.error());
  const CacheCounts counts = cache_counts(*statistics);
  if (!counts.known) return report({Code::kUnsupported, kUnknown});
  if (!options.json) return print_counts(counts), kFine;
  Json json;
  json.begin_object().member("first_touches", counts.first).member("evictions", counts.evictions);
  add_kinds(counts, json);
  std::printf("%s\n", json.end_object().text().c_str());
  return kFine;
}

// What is made beside the batches goes on for a moment after the last one. The figures when they stand still.
Result<CacheCounts> once_at_rest(Client& client) {
  const auto deadline = Clock::now() + kSettleWithin;
  MILLRACE_TRY(const Statistics first, client.statistics());
  CacheCounts before = cache_counts(first);
  while (wait_unless_interrupted(kLookEvery) && Clock::now() < deadline) {
    MILLRACE_TRY(const Statistics statistics, client.statistics());
    const CacheCounts now = cache_counts(statistics);
    if (now.pending <= 0 && now.making() == before.making()) return now;
    before = now;
  }
  return before;
}

struct Warmed {
  PassOutcome pass;
  CacheCounts before, after;
  double packed_before = 0;  // images of the first pass that came from packed coefficients
};

// A pass that touches each file, and one more where packed coefficients are made at the second access.
Result<Warmed> warm_up(Client& client, const CacheOptions& options) {
  MILLRACE_TRY(const Statistics statistics, client.statistics());
  Warmed warmed{.before = cache_counts(statistics)};
  if (!warmed.before.known) return Error{Code::kUnsupported, kUnknown};
  FolderPass pass{.session = "millrace cache",
                  .dataset = options.named,
                  .extensions = options.extensions,
                  .recipe = tiny_recipe(),
                  .title = "warming",
                  .quiet = options.json};
  MILLRACE_TRY(warmed.pass, pass_over(client, pass));
  MILLRACE_TRY(warmed.after, once_at_rest(client));
  const CacheCounts made = since(warmed.before, warmed.after);
  warmed.packed_before = made.kinds[kPackedKind].hits;
  if (made.kinds[kPackedKind].made > 0 || made.first + made.kinds[0].hits <= 0 || interrupted()) return warmed;
  pass.title = "packing";
  pass.lists_bad = false;  // the first pass has
  MILLRACE_TRY(const PassOutcome second, pass_over(client, pass));
  warmed.pass.elapsed += second.elapsed;
  if (!interrupted()) warmed.pass.unpacked = second.unpacked;  // which knows better
  MILLRACE_TRY(warmed.after, once_at_rest(client));
  return warmed;
}

int warm(CacheOptions& options) {
  Result<NamedDataset> named = named_dataset("", options.dataset, options.extensions);
  if (!named) return report(named.error());
  options.named = *std::move(named);
  watch_for_interrupt();
  auto connection = open_connection_for(options.connection, options.named);
  if (!connection) return report(connection.error());
  const auto warmed = warm_up(connection->client, options);
  if (!warmed) return report(warmed.error());
  const CacheCounts made = since(warmed->before, warmed->after);
  const CacheKind& packed = warmed->after.kinds[kPackedKind];
  if (options.json) {
    Json json;
    json.begin_object().member("images", warmed->pass.images).member("bad", warmed->pass.bad);
    json.member("seconds", warmed->pass.elapsed.count()).member("first_touches", made.first);
    json.member("new_packed", made.kinds[kPackedKind].made).member("packed_before", warmed->packed_before);
    warmed->pass.unpacked.add_to(json);
    json.member("packed_evicted", made.kinds[kPackedKind].evicted);
    add_kinds(warmed->after, json);
    std::printf("%s\n", json.end_object().text().c_str());
  } else {
    std::printf("%s images in %.1f s (%s bad): %s packed now, %s before; %.2f s of lanes for making\n",
                grouped(warmed->pass.images).c_str(), warmed->pass.elapsed.count(), grouped(warmed->pass.bad).c_str(),
                count_text(made.kinds[kPackedKind].made).c_str(), count_text(warmed->packed_before).c_str(),
                made.making());
    std::fputs(warmed->pass.unpacked.text().c_str(), stdout);
    if (made.kinds[kPackedKind].evicted > 0)
      std::printf("%s packed ones were let go of memory for others meanwhile\n",
                  count_text(made.kinds[kPackedKind].evicted).c_str());
    std::printf("of all datasets: %s packed images in memory (%s), %s on disk (%s)\n",
                count_text(packed.entries).c_str(), bytes_text(packed.bytes).c_str(),
                count_text(packed.disk_entries).c_str(), bytes_text(packed.disk_bytes).c_str());
  }
  std::fflush(stdout);
  if (interrupted()) return std::fputs("millrace: interrupted\n", stderr), kInterrupted;
  return warmed->pass.images == 0 ? report_nothing(warmed->pass.bad) : static_cast<int>(kFine);
}

}  // namespace

void add_cache(Command app, Chosen& chosen) {
  const Command command = app.subcommand("cache", "What the daemon keeps of images, to be faster the next time.");
  command.require_subcommand();
  command.footer(kCacheFooter);                     // before its subcommands, which inherit it
  auto options = std::make_shared<CacheOptions>();  // shared with the callback
  const Command stat_command =
      command.subcommand("stat", "What is kept, by kind, how often it helped, and what it saved.");
  stat_command.flag("--json", options->json, "print one JSON object");
  add_connection_options(stat_command, options->connection);
  stat_command.callback([options, &chosen] { chosen = [options] { return stat(*options); }; });

  auto warming = std::make_shared<CacheOptions>();
  const Command warm_command = command.subcommand("warm",
                                                  "Go through a folder or a list, so that the daemon has packed what "
                                                  "it can before somebody needs it; what is not packed "
                                                  "is counted by the reason.");
  warm_command.option("dataset", warming->dataset, "the folder, or a list of samples (JSON Lines)")
      .required()
      .check(not_empty());
  add_extension_option(warm_command, warming->extensions);
  warm_command.flag("--json", warming->json, "print one JSON object at the end");
  add_connection_options(warm_command, warming->connection);
  warm_command.callback([warming, &chosen] {
    require_agree(warming->extensions);
    chosen = [warming] { return warm(*warming); };
  });
  add_cache_orders(command, chosen);
}

}  // namespace millrace::cli
