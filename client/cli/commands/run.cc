// millrace run: a folder through a transform, with figures. What it makes is looked at and given back: a test of the
// way there.
#include <unistd.h>

#include <cstdio>
#include <map>
#include <memory>

#include "client/cli/connection.h"
#include "client/cli/extension_option.h"
#include "client/cli/interrupt.h"
#include "client/cli/list/named_dataset.h"
#include "client/cli/options.h"
#include "client/cli/position_file.h"
#include "client/cli/recipe_options.h"
#include "client/cli/text/cache_counts.h"
#include "client/cli/text/index_counts.h"
#include "client/cli/text/progress.h"
#include "client/cli/text/run_report.h"
#include "client/cli/text/skipped_files.h"
#include "client/cli/text/waiting_line.h"
#include "client/cli/trace/run_trace.h"
#include "proto/base/printable.h"

namespace millrace::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kSavePositionEvery{5};

const std::map<std::string, CacheUse> kCacheUse{{"off", CacheUse::kOff},
                                                {"index", CacheUse::kIndex},
                                                {"packed", CacheUse::kPacked},
                                                {"tensors", CacheUse::kTensors}};
const std::map<std::string, Fidelity> kFidelity{{"exact", Fidelity::kExact}, {"fast", Fidelity::kFast}};
const std::map<std::string, OnError> kOnError{
    {"skip", OnError::kSkip}, {"fail", OnError::kFail}, {"zero", OnError::kZero}, {"substitute", OnError::kSubstitute}};

struct RunOptions {
  ConnectionOptions connection;
  RecipeOptions recipe;
  std::string dataset;
  NamedDataset named;
  std::vector<std::string> extensions;
  std::uint32_t batch = 64;
  std::uint32_t slots = 3;  // three of 64 images fit the 64 MiB of shared memory that a container has
  std::uint64_t epochs = 1;
  std::uint64_t limit = 0;
  std::optional<std::string> on_error;
  std::string fidelity = "exact";
  std::string cache = "tensors";
  bool cache_at_once = false;
  std::string backend;
  std::string memory = kHostMemory;
  std::string job;
  std::string position;
  std::uint64_t slot_bytes = 0;
  EpochOptions order;  // shuffle, blocks, seed, rank, world_size, drop_last
  std::string trace;
  bool json = false;
};

// A run under way. Thread-bound(its owner).
class Run {
 public:
  explicit Run(const RunOptions& options) : options_(options), progress_(progress_style(options.json)) {}

  Result<void> run(Client& client);
  const RunReport& report() const { return report_; }
  std::chrono::duration<double> elapsed() const { return Clock::now() - began_; }
  void finish() { report_.finish(); }
  Result<void> finish_trace() { return trace_ ? trace_->finish() : Result<void>(); }
  bool nothing_left() const { return nothing_left_; }  // the position file says that all is done

 private:
  Result<Session> open(Client& client, const Recipe& recipe, Bytes slot_bytes);
  Result<Dataset> list(Session& session);
  Result<void> run_counted(Client& client, Session& session, const Dataset& dataset, const RunPosition& from);
  Result<void> run_epoch(Session& session, const Dataset& dataset, const RunPosition& from);
  Result<void> take_batches(Epoch& epoch, std::uint64_t number);
  Result<std::optional<Batch>> next(Epoch& epoch);
  Result<void> save(const RunPosition& position, bool now);
  void show(std::uint64_t epoch);
  void say_done();

  const RunOptions& options_;
  Progress progress_;
  RunReport report_;
  std::unique_ptr<RunTrace> trace_;  // null: nothing is recorded
  Clock::time_point began_ = Clock::now();
  Clock::time_point save_due_ = Clock::now() + kSavePositionEvery;
  std::uint64_t expected_ = 0;  // images of the epochs begun
  bool stopped_ = false;        // by --limit, in an epoch that --position keeps for the next run
  bool nothing_left_ = false;
};

std::optional<Bytes> slot_bytes_of(const RunOptions& options, const Recipe& recipe) {
  if (options.slot_bytes != 0) return Bytes{options.slot_bytes};
  const auto* longer = std::get_if<LongerSide>(&recipe.resize);
  if (longer == nullptr) return slot_bytes_for(recipe, options.batch);
  Recipe square = recipe;  // no image of it is larger than this
  square.resize = ExactSize{{longer->pixels, longer->pixels}};
  return slot_bytes_for(square, options.batch);
}

Result<void> Run::run(Client& client) {
  RunPosition at;
  if (!options_.position.empty()) {
    MILLRACE_TRY(at, read_position(options_.position));
    if (at.epoch >= options_.epochs) return say_done(), Result<void>();
  }
  const Recipe recipe = recipe_of(options_.recipe);
  MILLRACE_TRY(Session session, open(client, recipe, *slot_bytes_of(options_, recipe)));  // see require_whole()
  if (!options_.trace.empty()) {
    MILLRACE_TRY(trace_, RunTrace::begin(client.socket(), session.id(), options_.trace));
  }
  MILLRACE_TRY(const Dataset dataset, list(session));
  if (dataset.samples() == 0) return Error{Code::kNotFound, options_.dataset + ": no files in it"};
  began_ = Clock::now();
  for (; at.epoch < options_.epochs && !stopped_ && !interrupted(); at = {at.epoch + 1, {}})
    MILLRACE_TRY_VOID(run_counted(client, session, dataset, at));
  return {};
}

void Run::say_done() {
  nothing_left_ = true;
  std::fprintf(stderr, "millrace: %s: all of --epochs %s are done; remove it to begin again, or give more --epochs\n",
               printable(options_.position).c_str(), grouped(options_.epochs).c_str());
}

Result<Session> Run::open(Client& client, const Recipe& recipe, Bytes slot_bytes) {
  const bool is_on_host = options_.memory == kHostMemory;
  const std::string all =
      to_text(slot_bytes * options_.slots) + (is_on_host ? " of shared memory" : " of " + printable(options_.memory));
  if (!options_.json)
    std::fprintf(stderr, "millrace: %u slots of %s for a batch each: %s\n", options_.slots, to_text(slot_bytes).c_str(),
                 all.c_str());
  const WaitingLine waiting("filling " + all);
  return client.open_session({.name = "millrace run",
                              .job = options_.job,
                              .slots = options_.slots,
                              .batch = options_.batch,
                              .recipe = recipe,
                              .slot_bytes = slot_bytes,
                              .cache = kCacheUse.at(options_.cache),
                              .cache_at_once = options_.cache_at_once,
                              .memory = options_.memory,
                              .timeout = kPatience});
}

// An epoch, and a line about it.
Result<void> Run::run_counted(Client& client, Session& session, const Dataset& dataset, const RunPosition& from) {
  MILLRACE_TRY(const Statistics before, client.statistics());
  const std::uint64_t images = report_.images();
  const Clock::time_point began = Clock::now();
  MILLRACE_TRY_VOID(run_epoch(session, dataset, from));
  const std::chrono::duration<double> elapsed = Clock::now() - began;
  MILLRACE_TRY(const Statistics after, client.statistics());
  const IndexCounts index = since(index_counts(before), index_counts(after));
  const EpochReport epoch{from.epoch,
                          report_.images() - images,
                          elapsed,
                          static_cast<std::uint64_t>(index.hits),
                          static_cast<std::uint64_t>(index.misses),
                          since(cache_counts(before), cache_counts(after)),
                          others_were_open(before, after)};
  report_.add(epoch);
  for (const SessionStatistics& one : after.sessions)
    if (one.id == session.id() && one.cost) report_.costs(*one.cost);
  if (!options_.json && options_.epochs > 1) print_epoch(epoch, options_.epochs);
  return {};
}

Result<Dataset> Run::list(Session& session) {
  const bool terminal = progress_style(true) == ProgressStyle::kBar;
  auto dataset =
      open_named(session, options_.named,
                 {.extensions = options_.extensions, .unclassified = true, .progress = [&](std::uint64_t files) {
                    if (terminal) std::fprintf(stderr, "\rlisting: %s files\x1b[K", grouped(files).c_str());
                  }});
  if (terminal) std::fputs("\r\x1b[K", stderr);
  if (dataset && options_.extensions.empty() && !options_.named.is_list) print_skipped(*dataset);
  return dataset;
}

Result<void> Run::run_epoch(Session& session, const Dataset& dataset, const RunPosition& from) {
  EpochOptions order = options_.order;
  order.epoch = from.epoch;
  order.position = from.token;
  if (options_.on_error) order.on_error = kOnError.at(*options_.on_error);
  order.fidelity = kFidelity.at(options_.fidelity);
  order.backend = options_.backend;
  order.batches = (options_.limit + options_.batch - 1) / options_.batch;
  Epoch epoch = session.epoch(dataset, order);
  MILLRACE_TRY(const EpochShape shape, epoch.shape());
  const std::uint64_t left = shape.samples - std::min(shape.samples, shape.first_batch * options_.batch);
  expected_ =
      report_.images() + report_.bad() + (order.batches != 0 ? std::min(left, order.batches * options_.batch) : left);
  const auto taken = take_batches(epoch, from.epoch);
  progress_.clear();
  if (!taken) {
    const auto saved = save({from.epoch, epoch.position()}, true);
    if (!saved && saved.error().message != taken.error().message) cli::report(saved.error());
    return taken;
  }
  stopped_ = !options_.position.empty() && order.batches != 0 && shape.batches - shape.first_batch > order.batches;
  const bool to_be_continued = stopped_ || interrupted();
  return save(to_be_continued ? RunPosition{from.epoch, epoch.position()} : RunPosition{from.epoch + 1, {}}, true);
}

// Until the epoch ends or fails, or somebody interrupts.
Result<void> Run::take_batches(Epoch& epoch, std::uint64_t number) {
  while (!interrupted()) {
    MILLRACE_TRY(const std::optional<Batch> batch, next(epoch));
    if (!batch) break;
    const RunTrace::Slice slice(trace_.get(), "hold");
    report_.add(*batch, progress_);
    if (batch->failure) return *batch->failure;
    show(number);
    MILLRACE_TRY_VOID(save({number, epoch.position()}, false));
  }
  return {};
}

// As Epoch::next, but looks up now and then: for Ctrl-C, and to keep the bar moving. nullopt when interrupted, too.
Result<std::optional<Batch>> Run::next(Epoch& epoch) {
  const RunTrace::Slice slice(trace_.get(), "next");
  const auto deadline = Clock::now() + kPatience;
  while (!interrupted()) {
    auto batch = epoch.next(kLookEvery);
    if (batch || batch.error().code != Code::kDeadline || Clock::now() >= deadline) return batch;
  }
  return std::optional<Batch>();
}

Result<void> Run::save(const RunPosition& position, bool now) {
  if (options_.position.empty() || (!now && Clock::now() < save_due_)) return {};
  save_due_ = Clock::now() + kSavePositionEvery;
  return write_position(options_.position, position);
}

void Run::show(std::uint64_t epoch) {
  progress_.update({.title = "epoch " + std::to_string(epoch + 1) + "/" + std::to_string(options_.epochs),
                    .done = report_.images(),
                    .total = expected_,
                    .bytes = report_.bytes(),
                    .bad = report_.bad(),
                    .elapsed = elapsed()});
}

int run_dataset(RunOptions& options) {
  Result<NamedDataset> named = named_dataset("--dataset", options.dataset, options.extensions);
  if (!named) return report(named.error());
  options.named = *std::move(named);
  options.dataset = options.named.path;
  watch_for_interrupt();
  auto connection = open_connection_for(options.connection, options.named);
  if (!connection) return report(connection.error());
  const auto statistics = connection->client.statistics();
  if (!statistics) return report(statistics.error());
  Run run(options);
  const auto ended = run.run(connection->client);
  const auto elapsed = run.elapsed();
  const auto traced = run.finish_trace();
  run.finish();
  if (options.json) {
    run.report().print_json(elapsed, statistics->daemon_version);
  } else if ((ended && !run.nothing_left()) || run.report().images() > 0) {
    run.report().print_text(elapsed);
  }
  std::fflush(stdout);
  if (interrupted()) return std::fputs("millrace: interrupted\n", stderr), kInterrupted;
  if (!ended) return report(ended.error());
  if (!traced) return report(traced.error());
  return run.report().images() > 0 || run.nothing_left() ? static_cast<int>(kFine) : report_nothing(run.report().bad());
}

void add_order_options(Command command, RunOptions& options) {
  EpochOptions& order = options.order;
  command.option("--epochs", options.epochs, "how often through the folder")
      .check(whole_number(1))
      .show_default()
      .group("Order");
  command.flag("--shuffle", order.shuffle, "in a random order that --seed and the epoch decide").group("Order");
  command.option("--block-samples", order.block_samples, "with --shuffle: blocks of so many images in random order")
      .check(whole_number(1))
      .group("Order");
  command
      .option("--window-blocks", order.window_blocks, "of which so many are mixed image by image; with --block-samples")
      .check(whole_number(1))
      .group("Order");
  command.option("--seed", order.seed, "of the order, crops and flips, as far as they are random")
      .check(whole_number(0))
      .show_default()
      .group("Order");
  command.option("--batch", options.batch, "images in a batch")
      .check(whole_number(1, 65536))
      .show_default()
      .group("Order");
  command.flag("--drop-last", order.drop_last, "leave out the last batch if it is not full").group("Order");
  command.option("--rank", order.rank, "this process's share of the folder, from 0; below --world-size")
      .check(whole_number(0, (1U << 20) - 1))
      .show_default()
      .group("Order");
  command.option("--world-size", order.world_size, "in how many shares it is cut")
      .check(whole_number(1, 1U << 20))
      .show_default()
      .group("Order");
  command
      .option("--limit", options.limit,
              "stop an epoch after so many images, rounded up to whole batches; with --position the run ends "
              "there, and the "
              "next goes on after them")
      .check(whole_number(1))
      .group("Order");
  command.option("--position", options.position, "keep the position in this file, and resume from it if it is there")
      .check(not_empty())
      .group("Order");
}

// What only all options together show. May reject().
void require_whole(Command command, const RunOptions& options) {
  require_fits(command, options.recipe);
  require_agree(options.extensions);
  if (!slot_bytes_of(options, recipe_of(options.recipe)))
    reject(
        options.recipe.views.empty() ? "--slot-bytes" : "--view",
        options.recipe.views.empty()
            ? "--recipe " + options.recipe.preset + " leaves the size open: say how large a batch may be"
            : "one of them leaves the size open, and each view has one: give it resize { exact }, centre_crop or pad { "
              "to }");
  if (options.order.rank >= options.order.world_size)
    reject("--rank", "must be below --world-size, which is " + std::to_string(options.order.world_size) + ", is " +
                         std::to_string(options.order.rank));
  if (options.cache_at_once && options.cache == "off")
    reject("--cache-at-once", "--cache off keeps nothing: leave one of the two out");
}

}  // namespace

void add_run(Command app, Chosen& chosen) {
  auto options = std::make_shared<RunOptions>();  // shared with the callback
  const Command command = app.subcommand("run", "Send a folder of images through a transform and say how it went.");
  command
      .option("--dataset", options->dataset,
              "the folder, in which folders are the classes; or a list of samples (JSON Lines, as `python -m millrace "
              "list` writes it)")
      .required()
      .check(not_empty());
  command
      .option("--on-error", options->on_error,
              "what becomes of a bad sample: skip, zero, substitute, or fail the run (default: substitute with "
              "--shuffle, else skip, as long as bad ones are the exception)")
      .check(one_of(kOnError))
      .type_name("skip|fail|zero|substitute");
  command.option("--fidelity", options->fidelity, "Pillow's pixels bit by bit, or nearly those in less time")
      .check(one_of(kFidelity))
      .type_name("exact|fast")
      .show_default();
  command
      .option("--cache", options->cache,
              "the most that the daemon keeps of the images, each with those before; with --fidelity exact pixels "
              "are the same whatever is kept")
      .check(one_of(kCacheUse))
      .type_name("off|index|packed|tensors")
      .show_default();
  command.flag("--cache-at-once", options->cache_at_once,
               "keep it from the first access on, though that makes the first epoch slower; not with --cache off");
  add_extension_option(command, options->extensions);
  command
      .option("--trace", options->trace,
              "record the run, for a picture of time at https://ui.perfetto.dev: the daemon's work for it, and when "
              "this program waits; ten minutes at most")
      .check(not_empty())
      .type_name("FILE");
  command.flag("--json", options->json, "print one JSON object at the end");
  command.option("--slots", options->slots, "batches that may be finished or under way at once")
      .check(whole_number(1, 256))
      .show_default();
  command
      .option("--slot-bytes", options->slot_bytes,
              "room for one batch (default: computed where the transform fixes the size)")
      .check(positive_size());
  command.option("--backend", options->backend, "pin to this backend (default: the daemon places)").check(not_empty());
  command
      .option("--memory", options->memory,
              "where finished tensors lie: host, or in the memory of a GPU that `millrace devices` names; they come "
              "there whatever backend makes them")
      .check(not_empty())
      .type_name("host|GPU")
      .show_default();
  command.option("--job", options->job, "whose costs it adds to in `millrace stats` (default: $MILLRACE_JOB)")
      .check(not_empty());
  add_recipe_options(command, options->recipe);
  add_order_options(command, *options);
  add_connection_options(command, options->connection);
  command.footer(
      "Bad samples go to stderr with path and reason: the first 20 of a reason in full, at most 100 in all, the others "
      "as a count. They do not change the exit code unless --on-error is fail, or is left out and a batch has no good "
      "sample or more than one sample in 20 is bad after at least 1,000 (a wrong folder or a disk that is not mounted "
      "looks like that), or no image is left.\n\n"
      "With --epochs, each epoch's line says where its images came from: the file alone (in the first epoch, where "
      "there was no room to keep them, and always PNG, WebP and packed files whose finished tensors are not kept), a "
      "seek index (mostly in the second epoch, as packed coefficients are made), packed coefficients, or finished "
      "tensors. The daemon counts them for all sessions together: where "
      "others were open meanwhile, the line says so. What was saved is reckoned by what first accesses of such files "
      "took; as long as the daemon had none, by what they take a fast host. Of less than a second neither images/s nor "
      "what was saved is told, except in --json: it means nothing.\n\n"
      "A line of a list: {\"path\": \"/data/shard.tar\", \"offset\": 1536, \"length\": 48211, \"label\": 3}; without "
      "offset and length the whole file. Relative paths begin in the list's folder.\n\n"
      "Examples:\n"
      "  millrace run --dataset /data/train --shuffle --epochs 3\n"
      "  millrace run --dataset shards.jsonl --shuffle    the members of tar shards, by a list\n"
      "  millrace run --private --dataset ~/pictures --recipe evaluate --dtype float16 --json\n"
      "  millrace run --dataset /data/train --shuffle --position run.pos    Ctrl-C, and again: goes on where it was");
  command.callback([options, command, &chosen] {
    require_whole(command, *options);
    chosen = [options] { return run_dataset(*options); };
  });
}

}  // namespace millrace::cli
