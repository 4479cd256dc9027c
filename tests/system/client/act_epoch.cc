// Clients that read a dataset: to the end, to a position, or until they are killed.
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <vector>

#include "millrace/client.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/system/client/acts.h"
#include "tests/system/support/describe.h"
#include "tests/system/support/need.h"

namespace millrace {
namespace {

std::string text_of(const std::string& path) {
  if (path.empty() || !std::filesystem::exists(path)) return {};
  const auto bytes = read_file(path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::uint32_t number(Arguments arguments, std::string_view key, std::uint32_t otherwise) {
  return static_cast<std::uint32_t>(std::stoul(option(arguments, key, std::to_string(otherwise))));
}

Session open(const std::string& socket, std::uint32_t slots, std::uint32_t batch, const std::string& name) {
  Client client = need(Client::connect(socket));
  return need(client.open_session({.name = name, .slots = slots, .batch = batch, .recipe = Recipe::train(64)}));
}

}  // namespace

int act_epoch(const std::string& socket, Arguments arguments) {
  const std::string position_file = option(arguments, "position");
  const std::uint32_t batch_size = number(arguments, "batch", 4);
  const std::uint32_t stop_after = number(arguments, "stop_after", 0);
  const bool step = number(arguments, "step", 0) != 0;
  Session session = open(socket, 3, batch_size, "epoch");
  const Dataset dataset = need(session.open_dataset(arguments[0]));
  Epoch epoch = session.epoch(dataset, {.seed = number(arguments, "seed", 7),
                                        .epoch = 3,
                                        .shuffle = number(arguments, "shuffle", 1) != 0,
                                        .position = text_of(position_file)});
  std::uint32_t taken = 0;
  std::string line;
  while (stop_after == 0 || taken < stop_after) {
    if (step && !next_line(line)) return 0;
    const std::optional<Batch> batch = need(epoch.next());
    if (!batch) break;
    if (batch->failure) throw unexpected(*batch->failure);
    ++taken;
    if (!position_file.empty()) write_file(position_file, epoch.position());
    say("batch " + std::to_string(batch->id) + ": " + describe(batch->tensor));
  }
  say(stop_after != 0 && taken == stop_after ? "stopped" : "complete");
  return 0;
}

int act_hold(const std::string& socket, Arguments arguments) {
  const auto count = static_cast<std::uint32_t>(std::stoul(std::string(arguments[1])));
  Session session = open(socket, count, 4, "hold");
  const Dataset dataset = need(session.open_dataset(arguments[0]));
  Epoch epoch = session.epoch(dataset, {.seed = 7, .shuffle = true});
  std::vector<Batch> held;
  std::vector<std::string> seen;
  while (held.size() < count) {
    std::optional<Batch> batch = need(epoch.next());
    if (!batch) throw std::runtime_error("the epoch is too short to hold so many batches");
    held.push_back(*std::move(batch));
    seen.push_back(describe(held.back().tensor));
  }
  say("holding " + std::to_string(count));
  std::string line;
  while (next_line(line)) {
    bool same = true;
    for (std::size_t i = 0; i < held.size(); ++i) same = same && describe(held[i].tensor) == seen[i];
    say(same ? "same" : "different");
  }
  return 0;
}

int act_open(const std::string& socket, Arguments arguments) {
  Client client = need(Client::connect(socket));
  const Session session =
      need(client.open_session({.slots = static_cast<std::uint32_t>(std::stoul(std::string(arguments[0]))),
                                .slot_bytes = 1_MiB * std::stoul(std::string(arguments[1]))}));
  say("open");
  std::string line;
  while (next_line(line)) {
  }
  return 0;
}

}  // namespace millrace
