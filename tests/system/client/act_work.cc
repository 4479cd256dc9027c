// Clients that want as much as they can get, in various ways, until they are killed.
#include <chrono>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "millrace/client.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/system/client/acts.h"
#include "tests/system/support/need.h"

namespace millrace {
namespace {

std::uint32_t number_of(Arguments arguments, std::string_view key, std::uint32_t otherwise) {
  return static_cast<std::uint32_t>(std::stoul(option(arguments, key, std::to_string(otherwise))));
}

std::vector<std::string> paths_of(Arguments arguments) {
  std::vector<std::string> paths;
  for (const std::string& argument : arguments) {
    if (argument.find('=') == std::string::npos) paths.push_back(argument);
  }
  return paths;
}

Priority priority_of(const std::string& name) {
  if (name == "high") return Priority::kHigh;
  return name == "low" ? Priority::kLow : Priority::kNormal;
}

using Contents = std::vector<std::vector<std::byte>>;

// `count` samples, the paths over and over, or `contents` where there are some; a path that ends with '*' stands for
// files that are not there.
BatchRequest request_of(const std::vector<std::string>& paths, const Contents& contents, std::uint32_t count,
                        Priority priority) {
  BatchRequest request{.on_error = OnError::kSkip, .priority = priority};
  for (std::uint32_t i = 0; i < count; ++i) {
    if (!contents.empty()) {
      request.samples.push_back({.source = Encoded{contents[i % contents.size()]}});
      continue;
    }
    std::string path = paths[i % paths.size()];
    if (path.back() == '*') path.replace(path.size() - 1, 1, std::to_string(i));
    request.samples.push_back({.source = Path{std::move(path)}});
  }
  return request;
}

// How many batches all sessions of the process have had.
class Tally {
 public:
  void one_more() {
    const std::lock_guard lock(mutex_);
    say("done " + std::to_string(++count_));
  }

 private:
  std::mutex mutex_;
  std::uint64_t count_ = 0;
};

[[noreturn]] void work(Session& session, const BatchRequest& request, Tally& tally) {
  for (std::uint32_t i = 0; i < session.slots(); ++i) need(session.submit(request));
  while (true) {
    need(session.next(std::chrono::minutes(5)));
    need(session.submit(request));
    tally.one_more();
  }
}

}  // namespace

int act_work(const std::string& socket, Arguments arguments) {
  const std::uint32_t side = number_of(arguments, "side", 64), batch = number_of(arguments, "batch", 16);
  Recipe recipe{.resize = ExactSize{{side, side}}};
  if (number_of(arguments, "lanczos", 0) != 0) recipe.filter = Filter::kLanczos;
  if (number_of(arguments, "packed", 0) != 0) recipe = Recipe{.packing = Packing::kPacked};
  const Bytes slot = 1_MiB * number_of(arguments, "slot_mib", 0);
  const std::vector<std::string> paths = paths_of(arguments);
  Contents contents;
  if (number_of(arguments, "inline", 0) != 0)
    for (const std::string& path : paths) contents.push_back(read_file(path));
  const BatchRequest request = request_of(paths, contents, batch, priority_of(option(arguments, "priority")));
  Client client = need(Client::connect(socket));
  Tally tally;
  std::vector<std::thread> sessions;
  for (std::uint32_t i = 0; i < number_of(arguments, "sessions", 1); ++i) {
    sessions.emplace_back([&, session = need(client.open_session({.slots = number_of(arguments, "slots", 2),
                                                                  .batch = batch,
                                                                  .recipe = recipe,
                                                                  .slot_bytes = slot,
                                                                  .cache = CacheUse::kOff}))]() mutable {
      work(session, request, tally);
    });
  }
  for (std::thread& session : sessions) session.join();
  return 0;
}

int act_list_again(const std::string& socket, Arguments arguments) {
  Client client = need(Client::connect(socket));
  Session session = need(client.open_session({.slots = 1, .batch = 1, .recipe = Recipe::train(32)}));
  Tally tally;
  while (true) {
    need(session.open_dataset(arguments[0], {.timeout = std::chrono::minutes(5)}));
    tally.one_more();
  }
}

}  // namespace millrace
