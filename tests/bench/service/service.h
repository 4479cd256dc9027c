// Epochs of photographs through a daemon, as a training loop sees them. Thread-bound(its owner).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/bench/rig.h"

namespace millrace::bench {

// The files of a folder `copies` times, in a folder that goes with its owner: an epoch long enough to time.
class RepeatedFolder {
 public:
  RepeatedFolder(const std::vector<std::string>& files, std::uint32_t copies) {
    for (std::uint32_t copy = 0; copy < copies; ++copy) {
      for (const std::string& file : files) {
        const std::string name = std::to_string(copy) + "_" + std::filesystem::path(file).filename().string();
        std::filesystem::copy_file(file, folder_ / name, std::filesystem::copy_options::overwrite_existing);
      }
    }
  }
  const std::string& path() const { return folder_.path(); }

 private:
  TempFolder folder_;
};

// A daemon of its own and a session over all of a folder.
class Service {
 public:
  Service(const std::string& folder, std::uint32_t lanes, const Recipe& recipe = Recipe::train(224),
          std::uint32_t batch = 64)
      : rig_(Rig::start(folder, lanes)),
        session_(must(rig_.client.open_session({.name = "bench",
                                                .slots = 4,
                                                .batch = batch,
                                                .recipe = recipe,
                                                .cache = CacheUse::kIndex}),  // epochs that are alike
                      "opening a session")),
        dataset_(must(session_.open_dataset(folder), "opening the dataset")) {}

  // Images a second of one epoch.
  double epoch(std::uint64_t number) {
    const auto begin = std::chrono::steady_clock::now();
    std::uint64_t images = 0;
    Epoch epoch = session_.epoch(dataset_, {.seed = 1, .epoch = number, .shuffle = true, .on_error = OnError::kFail});
    for (const Batch& batch : epoch) images += batch.tensor.samples();
    if (!epoch.result()) give_up("an epoch failed: " + epoch.result().error().message);
    return static_cast<double>(images) / seconds_since(begin);
  }

  Statistics statistics() { return must(rig_.client.statistics(), "asking for statistics"); }
  const std::string& socket() const { return rig_.client.socket(); }
  std::int32_t daemon_pid() const { return rig_.daemon.pid(); }

 private:
  Rig rig_;
  Session session_;
  Dataset dataset_;
};

}  // namespace millrace::bench
