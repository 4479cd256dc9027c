// `millrace cache drop` and `verify`, at a real daemon: what they do, who may, and what hostile callers get.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "millrace/v1/cache.grpc.pb.h"
#include "tests/support/host/eventually.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/support/skip.h"
#include "tests/system/support/command.h"
#include "tests/system/support/daemon.h"
#include "tests/system/support/need.h"
#include "tests/system/support/raw_session.h"
#include "tests/system/support/users.h"

namespace millrace {
namespace {

constexpr int kCacheImages = 24;

struct CacheRig {
  explicit CacheRig(const std::string& cache = "disk = \"1 GiB\"\n")
      : paths(write_image_folder(folder.path(),
                                 {.images = kCacheImages, .min_side = 250, .max_side = 400, .only_jpeg = true})),
        cache_lines(cache) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2'100));  // until every file is stable
  }
  DaemonSpec spec() const {
    return {.roots = {folder.path()},
            .cpu = "target = \"avx2\"\n",
            .cache = "settled_seconds = 2\n" + cache_lines,
            .daemon = "state_dir = \"" + state.path() + "\"\n"};
  }

  TempFolder folder, state;
  std::vector<std::string> paths;
  std::string cache_lines;
};

std::vector<std::byte> touch(const Daemon& daemon, const CacheRig& rig, CacheUse cache = CacheUse::kPacked) {
  Session session = need(daemon.connect().open_session(
      {.batch = kCacheImages, .recipe = Recipe::train(64), .cache = cache, .cache_at_once = cache != CacheUse::kOff}));
  BatchRequest request{.seed = 5, .on_error = OnError::kZero};
  for (const std::string& path : rig.paths) request.samples.push_back({.source = Path{path}});
  const Batch batch = need(session.wait(need(session.submit(std::move(request)))));
  return {batch.tensor.data().begin(), batch.tensor.data().end()};
}

double packed(const Daemon& daemon, const std::string& name) {
  for (const Metric& metric : need(daemon.connect().statistics()).metrics) {
    if (metric.name != name) continue;
    const auto found = std::ranges::find(metric.values, "packed", &LabelledValue::label);
    return found == metric.values.end() ? 0 : found->value;
  }
  throw std::runtime_error("no figure " + name);
}

void keep_on_disk(const Daemon& daemon, const CacheRig& rig) {
  touch(daemon, rig);
  REQUIRE(eventually([&] { return packed(daemon, "millrace_cache_disk_entries") == kCacheImages; }));
}

Ran order(const Daemon& daemon, const std::vector<std::string>& words) {
  std::vector<std::string> argv{"millrace", "cache"};
  argv.insert(argv.end(), words.begin(), words.end());
  argv.insert(argv.end(), {"--socket", daemon.socket()});
  return run(std::move(argv));
}

// Every byte at such a distance, in all data files of the store.
void damage(const CacheRig& rig) {
  for (const auto& entry : std::filesystem::directory_iterator(rig.state / "cache")) {
    if (entry.path().extension() != ".mrc") continue;
    std::fstream file(entry.path(), std::ios::binary | std::ios::in | std::ios::out);
    for (std::uintmax_t at = 0; at < entry.file_size(); at += 4'096) {
      file.seekp(static_cast<std::streamoff>(at));
      file.put('\x5A');
    }
  }
}

struct RawOrders {
  explicit RawOrders(const Daemon& daemon)
      : handoff(daemon.socket()), stub(v1::Cache::NewStub(raw_channel(daemon.socket()))) {
    handoff.hello();
  }
  grpc::Status drop(const v1::DropCacheRequest& request) {
    grpc::ClientContext context;
    v1::DropCacheReply reply;
    return stub->Drop(&context, request, &reply);
  }
  v1::DropCacheRequest all() const {
    v1::DropCacheRequest request;
    request.set_ticket(handoff.ticket());
    request.set_memory(true);
    request.set_disk(true);
    return request;
  }

  RawHandoff handoff;
  std::unique_ptr<v1::Cache::Stub> stub;
};

}  // namespace

TEST_CASE("millrace cache drop empties both tiers, and the pixels stay the same", "[system]") {
  if (skips_where_no_file_is_kept()) return;
  const CacheRig rig;
  const Daemon daemon(rig.spec());
  const auto truth = touch(daemon, rig, CacheUse::kOff);
  keep_on_disk(daemon, rig);

  const Ran text = order(daemon, {"drop", "--memory"});
  CAPTURE(text.output, text.errors);
  REQUIRE(text.status == 0);
  REQUIRE_THAT(text.output, Catch::StartsWith("memory: ") && Catch::Contains(" entries dropped ("));
  REQUIRE_THAT(text.output, !Catch::Contains("disk"));
  REQUIRE(packed(daemon, "millrace_cache_entries") == 0);
  REQUIRE(packed(daemon, "millrace_cache_disk_entries") == kCacheImages);
  REQUIRE((touch(daemon, rig) == truth));
  REQUIRE(packed(daemon, "millrace_cache_disk_hits_total") == kCacheImages);

  const auto dropped = parsed(order(daemon, {"drop", "--json"}).output);
  REQUIRE(dropped.get<int>("memory_entries") >= kCacheImages);
  REQUIRE(dropped.get<int>("disk_entries") >= kCacheImages);
  REQUIRE(dropped.get<int>("disk_entries_left") == 0);
  REQUIRE(daemon.metric("millrace_cache_entries") == 0);
  REQUIRE(daemon.metric("millrace_cache_disk_entries") == 0);
  for (const auto& file : std::filesystem::directory_iterator(rig.state / "cache")) FAIL(file.path().string());
  const double first = daemon.metric("millrace_first_touches_total");
  REQUIRE((touch(daemon, rig) == truth));
  REQUIRE(daemon.metric("millrace_first_touches_total") == first + kCacheImages);
}

TEST_CASE("millrace cache verify finds what is damaged once, and says so", "[system]") {
  if (skips_where_no_file_is_kept()) return;
  const CacheRig rig;
  const Daemon daemon(rig.spec());
  keep_on_disk(daemon, rig);
  const Ran sound = order(daemon, {"verify"});
  CAPTURE(sound.output, sound.errors);
  REQUIRE(sound.status == 0);
  REQUIRE_THAT(sound.output, Catch::EndsWith("all as they were written\n"));

  damage(rig);
  const Ran first = order(daemon, {"verify", "--json"});
  const auto found = parsed(first.output);
  REQUIRE(first.status == 1);
  REQUIRE(found.get<int>("entries") >= kCacheImages);
  REQUIRE(found.get<int>("wrong") >= kCacheImages);

  const Ran again = order(daemon, {"verify", "--json"});
  REQUIRE(again.status == 0);
  REQUIRE(parsed(again.output).get<int>("wrong") == 0);
}

TEST_CASE("orders that cannot be carried out say why", "[system]") {
  const CacheRig rig("disk = 0\n");
  const Daemon daemon(rig.spec());
  const Ran verify = order(daemon, {"verify"}), disk = order(daemon, {"drop", "--disk"}),
            both = order(daemon, {"drop"});
  CAPTURE(verify.errors, disk.errors, both.errors);
  REQUIRE(verify.status == 1);
  REQUIRE(verify.errors == "millrace: nothing is kept on disk: cache.disk is 0\n");
  REQUIRE(disk.errors == verify.errors);
  REQUIRE(both.status == 0);

  const Daemon without({.cache = "memory = 0\n"});
  const Ran none = order(without, {"drop"});
  REQUIRE(none.status == 1);
  REQUIRE(none.errors == "millrace: nothing is kept: cache.memory is 0\n");
}

TEST_CASE("only the daemon's own user and root may give orders to the cache", "[system]") {
  if (!is_root()) return skip_loudly("orders of several users to the cache (needs root, to be several users)");
  const TempFolder bin;
  std::filesystem::permissions(bin.path(), std::filesystem::perms(0755));
  const std::string program = copy_for_all_users(bin_folder() + "/millrace", bin.path());
  const Daemon daemon({.user = kService, .for_all_users = true});
  const auto by = [&](uid_t user, const std::string& what) {
    const Process process =
        Process::spawn({.argv = {program, "cache", what, "--socket", daemon.socket()}, .user = user});
    const auto status = process.wait();
    return std::pair(status.value_or(-1), process.errors());
  };

  for (const char* const what : {"drop", "verify"}) {
    const auto [status, errors] = by(kStranger, what);
    CAPTURE(what, errors);
    REQUIRE(status == 1);
    REQUIRE(
        errors ==
        "millrace: the daemon is everybody's: only root, the daemon's own user (uid 64001) and those of access.admins "
        "in its settings may drop or verify what it keeps; you are uid " +
            std::to_string(kStranger) + "\n");
  }
  REQUIRE(by(kService, "drop").first == 0);
  REQUIRE(order(daemon, {"drop"}).status == 0);
}

TEST_CASE("orders without a ticket, a choice or a meaning are refused", "[system]") {
  const Daemon daemon({});
  RawOrders orders(daemon);
  v1::DropCacheRequest forged = orders.all(), cut = orders.all(), empty = orders.all(), newer = orders.all();
  forged.set_ticket(std::string(16, 'x'));
  cut.set_ticket("x");
  empty.set_memory(false);
  empty.set_disk(false);
  newer.GetReflection()->MutableUnknownFields(&newer)->AddVarint(500, 1);

  REQUIRE(orders.drop(forged).error_code() == grpc::StatusCode::UNAUTHENTICATED);
  REQUIRE_THAT(orders.drop(cut).error_message(), Catch::StartsWith("ticket: must be the 16 bytes"));
  REQUIRE(orders.drop(empty).error_message() == "say what to drop: memory, disk, or both");
  REQUIRE_THAT(orders.drop(newer).error_message(), Catch::StartsWith("500: a field of DropCacheRequest"));
  REQUIRE(orders.drop(orders.all()).ok());
}

TEST_CASE("verifying ends with its client, and as many go on at a time as may", "[system]") {
  if (skips_where_no_file_is_kept()) return;
  const CacheRig rig;
  const Daemon daemon(rig.spec());
  keep_on_disk(daemon, rig);
  for (int i = 0; i < 20; ++i) {
    RawOrders orders(daemon);
    grpc::ClientContext context;
    v1::VerifyCacheRequest request;
    request.set_ticket(orders.handoff.ticket());
    const auto reader = orders.stub->Verify(&context, request);
    v1::VerifyCacheProgress progress;
    if (i % 2 == 0) reader->Read(&progress);
    context.TryCancel();
    while (reader->Read(&progress)) {
    }
    reader->Finish();
  }

  // The two that may be under way have ended, or none of these would be let in.
  REQUIRE(eventually([&] { return order(daemon, {"verify"}).status == 0; }));
  REQUIRE(need(daemon.connect().verify_cache()).entries >= kCacheImages);
  REQUIRE(daemon.connect().verify_cache([](const VerifiedCache&) { return false; }).has_value() == false);
  REQUIRE(daemon.running());
}

}  // namespace millrace
