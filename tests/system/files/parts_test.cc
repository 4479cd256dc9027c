// Samples that are parts of files: through a real daemon, beside the same pictures as files.
#include <sys/stat.h>
#include <utime.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <map>
#include <string>

#include "millrace/client.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/system/support/daemon.h"
#include "tests/system/support/describe.h"
#include "tests/system/support/need.h"

namespace millrace {
namespace {

constexpr std::uint32_t kPartPictures = 24, kPartShards = 2;

// The pictures of a folder, and the same bytes in shards, each behind 512 bytes that are none of it.
struct PartsMill {
  PartsMill() {
    for (std::uint32_t i = 0; i < kPartPictures; ++i) {
      std::string& bytes = shards[folder / ("shard" + std::to_string(i % kPartShards) + ".tar")];
      const std::vector<std::byte> picture = read_file(paths[i]);
      bytes += std::string(512, 'h');
      parts.push_back(
          {folder / ("shard" + std::to_string(i % kPartShards) + ".tar"), i, FileRange{bytes.size(), picture.size()}});
      bytes.append(reinterpret_cast<const char*>(picture.data()), picture.size());
    }
    for (const auto& [path, bytes] : shards) write_file(path, bytes);
    for (const std::string& path : paths) files.push_back({path, static_cast<std::int64_t>(files.size())});
  }

  Session open(Client& client, std::uint32_t batch = 4) const {
    return need(client.open_session({.slots = 3, .batch = batch, .recipe = Recipe::train(56)}));
  }
  FileStamp stamp_of(const std::string& path) const {
    struct stat status {};
    REQUIRE(stat(path.c_str(), &status) == 0);
    return {static_cast<std::uint64_t>(status.st_size),
            std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec};
  }
  std::vector<ListedFile> stamped() const {
    std::vector<ListedFile> listed = parts;
    for (ListedFile& part : listed) part.stamp = stamp_of(part.path);
    return listed;
  }

  TempFolder folder;
  std::vector<std::string> paths = write_image_folder(folder / "pictures", {.images = kPartPictures, .classes = 2});
  std::map<std::string, std::string> shards;
  std::vector<ListedFile> parts, files;
};

std::vector<std::string> epoch_of(Session& session, const Dataset& dataset, const EpochOptions& options) {
  Epoch epoch = session.epoch(dataset, options);
  std::vector<std::string> batches;
  for (const Batch& batch : epoch) {
    CHECK(batch.errors.empty());
    batches.push_back(describe(batch.tensor));
  }
  need(epoch.result());
  return batches;
}

std::string part_name(const ListedFile& part) {
  return part.path + "[" + std::to_string(part.range->offset) + "+" + std::to_string(part.range->length) + "]";
}

}  // namespace

TEST_CASE("parts of files give the pixels, labels and order that the same files give", "[system]") {
  const PartsMill mill;
  const Daemon daemon({.roots = {mill.folder.path()}});
  Client client = daemon.connect();
  Session session = mill.open(client);
  const Dataset parts = need(session.open_files(mill.stamped())), files = need(session.open_files(mill.files));

  for (const std::uint64_t seed : {3, 4}) {
    const EpochOptions options{.seed = seed, .shuffle = true};
    CHECK(epoch_of(session, parts, options) == epoch_of(session, files, options));
  }
  CHECK_FALSE(parts.fingerprint() == files.fingerprint());
  const std::vector<std::uint64_t> asked{5, 0};
  CHECK(need(parts.parts_of(asked)) ==
        std::vector<SampleFile>{{mill.parts[5].path, mill.parts[5].range}, {mill.parts[0].path, mill.parts[0].range}});
  CHECK(need(files.parts_of(asked)) == std::vector<SampleFile>{{mill.paths[5], {}}, {mill.paths[0], {}}});
  std::vector<ListedFile> mixed = mill.files;
  mixed[1] = mill.parts[1];
  const Dataset some = need(session.open_files(mixed));
  CHECK(need(some.parts_of(std::vector<std::uint64_t>{0, 1})) ==
        std::vector<SampleFile>{{mill.paths[0], {}}, {mill.parts[1].path, mill.parts[1].range}});
  CHECK(epoch_of(session, some, {}) == epoch_of(session, files, {}));
}

TEST_CASE("a list that is made as it is sent is that list", "[system]") {
  const PartsMill mill;
  const Daemon daemon({.roots = {mill.folder.path()}});
  Client client = daemon.connect();
  Session session = mill.open(client);
  constexpr std::uint64_t kMany = 200'000;  // some messages
  std::uint64_t made = 0;
  const auto next = [&]() -> Result<std::optional<ListedFile>> {
    if (made == kMany) return std::optional<ListedFile>{};
    return std::optional(mill.parts[made++ % kPartPictures]);
  };

  const Dataset list = need(session.open_list(next));

  REQUIRE(list.samples() == kMany);
  const std::vector<std::uint64_t> last{kMany - 1};
  CHECK(need(list.parts_of(last)).front().range == mill.parts[(kMany - 1) % kPartPictures].range);
  const auto broken = [&]() -> Result<std::optional<ListedFile>> { return Error{Code::kInvalid, "line 7: is none"}; };
  CHECK(session.open_list(broken).error().message == "line 7: is none");
  CHECK(need(session.open_files(mill.parts)).samples() == kPartPictures);
}

TEST_CASE("an epoch over parts goes on after the daemon was killed, where its position says", "[system]") {
  const PartsMill mill;
  const EpochOptions options{.seed = 9, .shuffle = true};
  std::vector<std::string> told, rest;
  std::string position;
  {
    Daemon daemon({.roots = {mill.folder.path()}});
    Client client = daemon.connect();
    Session session = mill.open(client);
    const Dataset parts = need(session.open_files(mill.parts));
    told = epoch_of(session, parts, options);
    Epoch epoch = session.epoch(parts, options);
    for (int i = 0; i < 2; ++i) position = need(epoch.next())->position;
    daemon.kill(SIGKILL);
    REQUIRE(daemon.wait());
  }
  const Daemon daemon({.roots = {mill.folder.path()}});
  Client client = daemon.connect();
  Session session = mill.open(client);
  const Dataset parts = need(session.open_files(mill.parts));
  EpochOptions resumed = options;
  resumed.position = position;

  rest = epoch_of(session, parts, resumed);

  REQUIRE(told.size() == 6);
  CHECK(rest == std::vector<std::string>(told.begin() + 2, told.end()));
}

TEST_CASE("a part that its file has not is its sample's error, which names it", "[system]") {
  const PartsMill mill;
  const Daemon daemon({.roots = {mill.folder.path()}});
  Client client = daemon.connect();
  Session session = mill.open(client);
  std::vector<ListedFile> bad{mill.parts[0], mill.parts[1], mill.parts[2], mill.parts[3]};
  bad[1].range = FileRange{1U << 30U, 100};
  bad[2].range = FileRange{512, 0};

  Epoch epoch = session.epoch(need(session.open_files(bad)), {});
  const std::optional<Batch> batch = need(epoch.next());

  REQUIRE(batch);
  REQUIRE(batch->errors.size() == 2);
  CHECK(batch->errors[0].source == part_name(bad[1]));
  CHECK(batch->errors[0].path == bad[1].path);
  CHECK_THAT(batch->errors[0].error.message, Catch::Contains("has changed since it was listed"));
  CHECK(batch->errors[1].source == part_name(bad[2]));
  CHECK(batch->tensor.samples() == 2);
}

TEST_CASE("a batch of parts that are submitted has the pixels of the files", "[system]") {
  const PartsMill mill;
  const Daemon daemon({.roots = {mill.folder.path()}});
  Client client = daemon.connect();
  Session session = mill.open(client);
  BatchRequest parts, files;
  for (std::uint32_t i = 0; i < 4; ++i) {
    const ListedFile& part = mill.parts[i];
    parts.samples.push_back({.source = FilePart{part.path, part.range->offset, part.range->length}});
    files.samples.push_back({.source = Path{mill.paths[i]}});
  }

  const Batch of_parts = need(session.wait(need(session.submit(parts))));
  const Batch of_files = need(session.wait(need(session.submit(files))));

  CHECK_FALSE(of_parts.failure);
  CHECK(describe(of_parts.tensor) == describe(of_files.tensor));
  parts.samples[0].source = FilePart{mill.parts[0].path, 1, ~std::uint64_t{0}};
  CHECK_THAT(session.submit(parts).error().message, Catch::Contains("below 2^63"));
}

TEST_CASE("a file that has changed since it was listed fails its samples, kept ones as well", "[system]") {
  const PartsMill mill;
  const Daemon daemon({.roots = {mill.folder.path()}});
  Client client = daemon.connect();
  Session session = need(client.open_session(
      {.slots = 3, .batch = kPartPictures, .recipe = Recipe::evaluate(60, 56), .cache = CacheUse::kTensors}));
  const Dataset parts = need(session.open_files(mill.stamped()));
  epoch_of(session, parts, {});
  const std::string changed = mill.shards.begin()->first;
  const utimbuf long_ago{.actime = 1'000'000'000, .modtime = 1'000'000'000};
  REQUIRE(utime(changed.c_str(), &long_ago) == 0);

  Epoch epoch = session.epoch(parts, {});
  const std::optional<Batch> batch = need(epoch.next());

  REQUIRE(batch);
  CHECK(batch->bad == kPartPictures / kPartShards);
  for (const SampleError& error : batch->errors) {
    CHECK(error.error.code == Code::kPrecondition);
    CHECK(error.path == changed);
    CHECK_THAT(error.error.message,
               Catch::Contains("has changed since it was listed") && Catch::Contains("list it again"));
  }
  CHECK(batch->tensor.samples() == kPartPictures - kPartPictures / kPartShards);
  const Dataset anew = need(session.open_files(mill.stamped()));
  CHECK(epoch_of(session, anew, {}).size() == 1);
}

TEST_CASE("a list whose ranges or stamps are none is refused, and names the sample", "[system]") {
  const PartsMill mill;
  const Daemon daemon({.roots = {mill.folder.path()}});
  Client client = daemon.connect();
  Session session = mill.open(client);
  std::vector<ListedFile> bad = mill.parts;
  bad[2].range = FileRange{1, (std::uint64_t{1} << 63U) - 1};
  const auto too_far = session.open_files(bad);
  bad = mill.stamped();
  bad[3].stamp.reset();
  const auto half_stamped = session.open_files(bad);
  bad = mill.parts;
  bad[1].path = "/etc/passwd";
  const auto outside = session.open_files(bad);

  CHECK_THAT(too_far.error().message, Catch::Contains("sample 2") && Catch::Contains("below 2^63"));
  CHECK_THAT(half_stamped.error().message, Catch::Contains("sample 3") && Catch::Contains("stamp"));
  CHECK(outside.error().code == Code::kDenied);
  CHECK_THAT(outside.error().message, Catch::Contains("/etc/passwd"));
}

}  // namespace millrace
