#include "tests/system/devices/card_mill.h"

#include <algorithm>
#include <stdexcept>

#include "tests/support/host/cards.h"
#include "tests/support/host/decoder_processes.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/support/pictures/test_images.h"
#include "tests/system/support/need.h"

namespace millrace {
namespace {

constexpr std::uint32_t kBatch = 8;

// Baseline JPEG files.
std::vector<std::string> write_jpegs(const TempFolder& folder, std::uint32_t side) {
  std::vector<std::string> paths;
  for (std::uint32_t i = 0; i < kCardImages; ++i) {
    paths.push_back(folder / ("image_" + std::to_string(100 + i) + ".jpg"));
    write_file(paths.back(), make_jpeg({.pixels = make_pixels(side + 7 * (i % 9), side - 10 + 11 * (i % 7), 3, i)}));
  }
  return paths;
}

std::vector<std::pair<std::string, std::string>> environment_of(const CardSpec& spec, const std::string& control) {
  auto environment = card_environment(spec.cards, spec.faults, spec.ordered ? control : "");
  environment.emplace_back("MILLRACE_CARD_PROGRAM_MS", std::to_string(spec.program_milliseconds));
  return environment;
}

}  // namespace

CardMill::CardMill(const CardSpec& spec)
    : paths(write_jpegs(folder, spec.side)),
      daemon({.roots = {folder.path()},
              .cache = spec.cache,
              .limits = spec.limits,
              .fpga = "yes",
              .fpga_settings = (spec.settings.find("staging") == std::string::npos ? "staging = \"32 MiB\"\n" : "") +
                               std::string("images = \"") + (spec.images.empty() ? card_images() : spec.images) +
                               "\"\n" + spec.settings,
              .env = environment_of(spec, control())}) {}

std::vector<pid_t> CardMill::owners() const {
  return child_processes(daemon.pid(), "millrace-fpga");
}

std::vector<pid_t> CardMill::cards(pid_t owner) const {
  return child_processes(owner, card_program());
}

Device CardMill::device(const std::string& name) const {
  const std::vector<Device> devices = need(daemon.connect().devices());
  const auto found = std::find_if(devices.begin(), devices.end(), [&](const Device& d) { return d.backend == name; });
  if (found == devices.end()) throw std::runtime_error("there is no " + name);
  return *found;
}

CardEpoch run_epoch(const CardMill& mill, const std::string& backend, const std::function<void()>& between,
                    CacheUse cache) {
  Session session = need(mill.daemon.connect().open_session(
      {.slots = 2, .batch = kBatch, .recipe = Recipe::train(40), .cache = cache, .cache_at_once = true}));
  const Dataset dataset = need(session.open_dataset(mill.folder.path()));
  CardEpoch made;
  Epoch epoch = session.epoch(dataset, {.batch = kBatch, .seed = 3, .backend = backend});
  for (Batch& batch : epoch) {
    for (const SampleError& error : batch.errors) made.errors.push_back(error.error.message);
    for (std::size_t i = 0; i < batch.tensor.samples(); ++i) {
      const auto pixels = batch.tensor.pixels(i);
      const bool is_new =
          made.tensors.emplace(batch.tensor.sample(i).id, std::vector(pixels.begin(), pixels.end())).second;
      if (!is_new) made.errors.push_back("a sample came twice");
      ++made.by_backend[batch.tensor.sample(i).backend];
    }
    batch.tensor = {};
    if (between) between();
  }
  if (!epoch.result()) made.errors.push_back(epoch.result().error().message);
  return made;
}

}  // namespace millrace
