// What it costs that samples are parts of files: photographs as files, and the same bytes as members of shards laid out
// as tar archives, by turns through one daemon.
#include <unistd.h>

#include <string>
#include <vector>

#include "tests/bench/figures.h"
#include "tests/bench/host.h"
#include "tests/bench/service/cores.h"

namespace millrace::bench {
namespace {

constexpr std::uint32_t kTurns = 16, kTurnCopies = 6, kShards = 8;
constexpr std::size_t kBlock = 512;  // of a tar archive

// The photographs some times over, as files and in shards. All are settled, as the daemon sees it.
class FilesAndShards {
 public:
  explicit FilesAndShards(const Photographs& photographs) : files_folder_(photographs.folder()) {
    std::vector<std::string> shards(kShards);
    std::uint64_t number = 0;
    for (const std::string& file : files_in(files_folder_)) {
      const std::size_t shard = number++ % kShards;
      const std::vector<std::byte> photograph = read_file(file);
      std::string& bytes = shards[shard];
      bytes.append(kBlock, 'h');
      parts.push_back({shard_path(shard), -1, FileRange{bytes.size(), photograph.size()}});
      bytes.append(reinterpret_cast<const char*>(photograph.data()), photograph.size());
      bytes.resize((bytes.size() + kBlock - 1) / kBlock * kBlock);
      files.push_back({file});
    }
    for (std::size_t shard = 0; shard < kShards; ++shard) write_file(shard_path(shard), shards[shard]);
    wait_until_settled();
  }

  const std::string& files_folder() const { return files_folder_; }
  const std::string& shards_folder() const { return shards_.path(); }

  std::vector<ListedFile> files, parts;

 private:
  std::string shard_path(std::size_t shard) const { return shards_ / (std::to_string(shard) + ".tar"); }

  const std::string files_folder_;
  TempFolder shards_;
};

// What an epoch took.
struct Turn {
  double rate = 0;       // images a second
  double processor = 0;  // the daemon's and this process's, us an image
};

// One daemon, and a session of each kind.
class TurnsRig {
 public:
  TurnsRig(const FilesAndShards& both, CacheUse cache)
      : settings_(write_settings()),
        rig_(Rig::start(both.files_folder(), 2, {"--root", both.shards_folder(), "--config", settings_})),
        files_(open(cache)),
        parts_(open(cache)),
        of_files_(must(files_.open_files(both.files), "listing the files")),
        of_parts_(must(parts_.open_files(both.parts), "listing the parts")) {}

  Turn files(std::uint64_t number) { return run(files_, of_files_, number); }
  Turn parts(std::uint64_t number) { return run(parts_, of_parts_, number); }

 private:
  std::string write_settings() const {
    write_file(state_ / "millrace.toml", "[cache]\ndisk = 0\n" + std::string(Host::kSettled) +
                                             "[daemon]\nstate_dir = \"" + state_.path() + "\"\n");
    return state_ / "millrace.toml";
  }
  Session open(CacheUse cache) {
    return must(rig_.client.open_session({.slots = 4,
                                          .batch = 64,
                                          .recipe = Recipe::train(224),
                                          .cache = cache,
                                          .cache_at_once = cache == CacheUse::kPacked}),
                "opening a session");
  }
  double processor() const { return processor_seconds(::getpid()) + processor_seconds(rig_.daemon.pid()); }
  Turn run(Session& session, const Dataset& dataset, std::uint64_t number) const {
    const double before = processor();
    const auto begin = std::chrono::steady_clock::now();
    std::uint64_t images = 0;
    Epoch epoch = session.epoch(dataset, {.seed = 1, .epoch = number, .shuffle = true, .on_error = OnError::kFail});
    for (const Batch& batch : epoch) images += batch.tensor.samples();
    if (!epoch.result()) give_up("an epoch failed: " + epoch.result().error().message);
    const auto count = static_cast<double>(images);
    return {count / seconds_since(begin), (processor() - before) / count * 1e6};
  }

  TempFolder state_;
  const std::string settings_;
  Rig rig_;
  Session files_, parts_;
  Dataset of_files_, of_parts_;
};

enum class FromDisk : bool { kNo, kYes };

struct Measured {
  const char* rate;  // the names of its figures
  const char* processor;
  CacheUse cache;
  FromDisk from_disk;
};

void measure(const Measured& what, const FilesAndShards& both, std::uint32_t turns, const Report& report) {
  report.progress(std::string(what.rate) + ", " + std::to_string(turns) + " rounds");
  TurnsRig rig(both, what.cache);
  for (const std::uint64_t number : {0U, 1U}) {
    rig.files(number);
    rig.parts(number);
  }
  std::vector<double> files, parts, files_processor, parts_processor;
  for (std::uint64_t number = 2; number < turns + 2; ++number) {
    const auto forget = [&] {
      if (what.from_disk == FromDisk::kNo) return;
      drop_from_page_cache(both.files_folder());
      drop_from_page_cache(both.shards_folder());
    };
    const auto take = [&](Turn turn, std::vector<double>& rates, std::vector<double>& processor) {
      rates.push_back(turn.rate);
      processor.push_back(turn.processor);
    };
    const auto take_files = [&] { forget(), take(rig.files(number), files, files_processor); };
    if (number % 2 == 0) take_files();
    forget();
    take(rig.parts(number), parts, parts_processor);
    if (number % 2 == 1) take_files();
  }
  report.add(compared({.name = what.rate, .unit = "images/s", .rounds = turns}, parts, "the same files", files));
  report.add(compared({.name = what.processor, .unit = "us an image", .rounds = turns}, parts_processor,
                      "the same files", files_processor));
}

}  // namespace

void run_parts(const BenchOptions& options, const Report& report) {
  const Photographs photographs(options.data, options.quick ? 1 : kTurnCopies);
  const FilesAndShards both(photographs);
  const std::uint32_t turns = options.quick ? 1 : kTurns;
  const Measured all[] = {{"parts.ratio.first", "parts.cpu.first", CacheUse::kOff, FromDisk::kNo},
                          {"parts.ratio.packed", "parts.cpu.packed", CacheUse::kPacked, FromDisk::kNo},
                          {"parts.ratio.cold", "parts.cpu.cold", CacheUse::kOff, FromDisk::kYes}};
  for (const Measured& one : all) {
    if ((one.rate + std::string(" ") + one.processor).find(options.filter) != std::string::npos)
      measure(one, both, turns, report);
  }
}

}  // namespace millrace::bench
