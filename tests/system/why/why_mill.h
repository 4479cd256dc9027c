// A real daemon, a program that loads images in some way until it is told to stop, and what the daemon says that the
// program waits for. Thread-bound(the test).
#pragma once

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/host/eventually.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/support/pictures/test_images.h"
#include "tests/system/support/command.h"
#include "tests/system/support/daemon.h"
#include "tests/system/support/need.h"

namespace millrace {

// Keeps nothing, unless a test is about that.
inline constexpr const char* kNothingKept = "memory = 0\n";

struct WhyPictures {
  std::uint32_t images = 32;
  std::uint32_t side = 60;  // pixels
  bool png = false;
};

struct WhyMill {
  explicit WhyMill(WhyPictures pictures = {}, DaemonSpec spec = {.cache = kNothingKept})
      : daemon([&] {
          const std::string kind = pictures.png ? ".png" : ".jpg";
          std::filesystem::create_directory(folder / "pictures");
          std::filesystem::permissions(folder.path(),
                                       std::filesystem::perms::others_exec | std::filesystem::perms::others_read,
                                       std::filesystem::perm_options::add);
          for (std::uint32_t i = 0; i < pictures.images; ++i) {
            paths.push_back(folder / "pictures" + "/" + std::to_string(1000 + i) + kind);
            const Pixels pixels = make_pixels(pictures.side, pictures.side, 3, i);
            write_file(paths.back(), pictures.png ? make_png({.pixels = pixels}) : make_jpeg({.pixels = pixels}));
          }
          spec.roots = {folder.path()};
          spec.log_level = "warning";
          return spec;
        }()) {}

  std::string pictures() const { return folder / "pictures"; }
  BatchRequest batch(std::uint32_t size = 4, const std::string& backend = "") const {
    BatchRequest request{.backend = backend};
    for (std::uint32_t i = 0; i < size; ++i) request.samples.push_back({.source = Path{paths[i % paths.size()]}});
    return request;
  }
  Session open(std::uint32_t slots = 4, std::uint32_t batch = 4, Recipe recipe = Recipe::train(32)) const {
    return need(daemon.connect().open_session({.slots = slots, .batch = batch, .recipe = std::move(recipe)}));
  }

  // What the daemon says now.
  SessionFindings of(std::uint64_t session) const { return need(daemon.connect().explain(session)).at(0); }

  // Whether the daemon comes to say this first.
  bool says_first(std::uint64_t session, const std::string& code) const {
    return eventually_says(session, [&](const SessionFindings& findings) { return findings.findings[0].code == code; });
  }

  template <class Holds>
  bool eventually_says(std::uint64_t session, Holds holds) const {
    const bool comes = eventually(
        [&] {
          std::this_thread::sleep_for(std::chrono::milliseconds(50));
          last = of(session);
          return holds(last);
        },
        std::chrono::seconds(30));
    if (!comes) {
      for (const Finding& finding : last.findings)
        UNSCOPED_INFO(finding.code << ' ' << finding.share << ": " << finding.text);
      UNSCOPED_INFO("waited " << last.waited << ", " << last.images_per_second << " images/s");
    }
    return comes;
  }

  TempFolder folder;
  std::vector<std::string> paths;
  Daemon daemon;
  mutable SessionFindings last{};  // that eventually_says() got
};

inline const Finding* finding_of(const SessionFindings& session, const std::string& code) {
  const auto found = std::ranges::find(session.findings, code, &Finding::code);
  return found == session.findings.end() ? nullptr : &*found;
}

inline double figure_of(const Finding& finding, const std::string& name) {
  for (const Figure& figure : finding.figures)
    if (figure.name == name) return figure.value;
  throw std::runtime_error("no figure " + name);
}

// The first that is no doing of other programs of this machine, which may have its processors as well.
inline std::string first_of_ours(const SessionFindings& session) {
  for (const Finding& finding : session.findings)
    if (finding.code != "other_programs") return finding.code;
  return "";
}

inline bool says_first_of_ours(const WhyMill& mill, std::uint64_t session, const std::string& code) {
  return mill.eventually_says(session, [&](const SessionFindings& told) { return first_of_ours(told) == code; });
}

// A program's thread: `step` again and again until this ends.
class Program {
 public:
  explicit Program(std::function<void()> step)
      : thread_([this, step = std::move(step)] {
          while (!over_) step();
        }) {}
  ~Program() {
    over_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> over_{false};
  std::thread thread_;
};

// Epochs of all pictures, one after the other; `compute` is what the program does with a batch.
inline std::function<void()> epochs(
    Session& session, const Dataset& dataset, std::function<void()> compute = [] {}) {
  return [&session, &dataset, compute = std::move(compute)] {
    Epoch epoch = session.epoch(dataset);
    while (const std::optional<Batch> batch = need(epoch.next())) compute();
  };
}

}  // namespace millrace
