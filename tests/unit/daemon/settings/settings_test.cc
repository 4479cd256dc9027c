#include "daemon/settings/settings.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>
#include <string>

#include "daemon/backend/backend_table.h"
#include "daemon/backend/cpu/cpu_settings.h"
#include "daemon/backend/fake/fake_settings.h"
#include "daemon/settings/key_table.h"
#include "daemon/settings/nearest_name.h"
#include "daemon/settings/state_dir.h"
#include "proto/base/sockets/handoff_path.h"
#include "tests/support/host/temp_folder.h"
#include "tests/support/skip.h"

namespace millrace {
namespace {

const KeyTable& keys() {
  static const KeyTable kKeys(backend_settings());
  return kKeys;
}

const CpuSettings& cpu(const Result<Settings>& settings) {
  return settings->groups.of<CpuSettings>();
}

Result<Settings> parse(std::string_view text) {
  return parse_settings(text, "millrace.toml", keys());
}

std::string complaint(std::string_view text) {
  const Result<Settings> settings = parse(text);
  if (settings) return "accepted";
  REQUIRE(settings.error().code == Code::kInvalid);
  return settings.error().message;
}

std::string read_whole(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// The example file with every setting in force.
std::string uncommented(const std::string& example) {
  std::istringstream lines(example);
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    const bool setting = line.size() > 1 && line[0] == '#' && line[1] != ' ';
    text += (setting ? line.substr(1) : line) + '\n';
  }
  return text;
}

TEST_CASE("every setting is read where it belongs", "[settings]") {
  const auto settings = parse(R"(
    [daemon]
    socket = "/tmp/m.sock"
    log_level = "debug"
    drain_seconds = 5
    state_dir = "/var/tmp/m"
    [lanes]
    cpu = 2
    cores = [3, 1]
    pin = "core"
    fetch_threads = 7
    [cpu]
    target = "avx2"
    [memory]
    segments = "2 GiB"
    encoded_in_flight = 1048577
    decoding = "3 GiB"
    [files]
    roots = ["/data", "/more data"]
    [limits]
    encoded = "1 MB"
    pixels = 1001
    side = 1002
    time_milliseconds = 1003
    samples = 1004
    path_bytes = 1005
    inline_message = "2 KiB"
    sessions = 1007
    sessions_per_user = 1008
    slots = 1009
    queued_batches = 1010
    datasets = 1011
    dataset_files = 1012
    ring = 1013
    [backends]
    cpu = false
    fake = "delay_us=1"
  )");

  REQUIRE(settings);
  REQUIRE(settings->socket == "/tmp/m.sock");
  REQUIRE(settings->log_level == LogLevel::kDebug);
  REQUIRE(settings->drain == std::chrono::seconds(5));
  REQUIRE(cpu(settings).lanes == 2);
  REQUIRE(cpu(settings).cores == std::vector{3, 1});
  REQUIRE(settings->fetch_threads == 7);
  REQUIRE(settings->state_dir == "/var/tmp/m");
  REQUIRE(cpu(settings).pin == LanePin::kCore);
  REQUIRE(cpu(settings).target == kernels::Target::kAvx2);
  REQUIRE(settings->segment_budget == 2_GiB);
  REQUIRE(settings->encoded_in_flight == 1048577_B);
  REQUIRE(settings->decoding == 3_GiB);
  REQUIRE(settings->roots == std::vector<std::string>{"/data", "/more data"});
  REQUIRE(settings->limits.sample.encoded == 1000000_B);
  REQUIRE(settings->limits.sample.pixels == 1001);
  REQUIRE(settings->limits.sample.side == 1002);
  REQUIRE(settings->limits.sample.time == std::chrono::milliseconds(1003));
  REQUIRE(settings->limits.batch.samples == 1004);
  REQUIRE(settings->limits.batch.path_bytes == 1005);
  REQUIRE(settings->limits.batch.inline_message == 2_KiB);
  REQUIRE(settings->limits.session.sessions == 1007);
  REQUIRE(settings->limits.session.sessions_per_user == 1008);
  REQUIRE(settings->limits.session.slots == 1009);
  REQUIRE(settings->limits.session.queued_batches == 1010);
  REQUIRE(settings->limits.session.datasets == 1011);
  REQUIRE(settings->limits.session.dataset_files == 1012);
  REQUIRE(settings->limits.session.ring == 1013_B);
  REQUIRE_FALSE(cpu(settings).wanted);
  REQUIRE(settings->groups.of<FakeSettings>().options == "delay_us=1");
}

TEST_CASE("an empty file means the defaults, and they are in order", "[settings]") {
  const auto settings = parse("");

  REQUIRE(settings);
  REQUIRE(to_toml(*settings, keys()) == to_toml(default_settings(), keys()));
  REQUIRE(check_settings(default_settings(), keys()));
}

TEST_CASE("the state directory is the service's where that is ours, else the user's, else none", "[settings]") {
  const TempFolder service, home;
  const StateDirHints all{.service = service.path(), .xdg_state_home = "/state", .home = home.path()};

  REQUIRE(automatic_state_dir(all) == service.path());
  REQUIRE(automatic_state_dir({.service = "/proc/1/no", .xdg_state_home = "/state", .home = home.path()}) ==
          "/state/millrace");
  REQUIRE(automatic_state_dir({.service = "/proc/1/no", .xdg_state_home = "relative", .home = home.path()}) ==
          home.path() + "/.local/state/millrace");
  REQUIRE(automatic_state_dir({.service = "/proc/1/no", .xdg_state_home = "", .home = "/nonexistent"}).empty());
  REQUIRE(automatic_state_dir({.service = "/proc/1/no", .xdg_state_home = "", .home = ""}).empty());
}

TEST_CASE("somebody else's folders are not taken for state, by root neither", "[settings]") {
  if (::geteuid() != 0) return skip_loudly("folders of another user (needs root)");
  const TempFolder theirs;
  REQUIRE(::chown(theirs.path().c_str(), 65'534, 65'534) == 0);

  REQUIRE(automatic_state_dir({.service = theirs.path(), .xdg_state_home = "", .home = theirs.path()}).empty());
  REQUIRE(make_state_dir(theirs.path()).error().code == Code::kDenied);
}

TEST_CASE("the state directory is made with what is above it, for its user alone", "[settings]") {
  const TempFolder folder;
  const std::string made = folder / "state/local/millrace";

  REQUIRE(make_state_dir(made));
  REQUIRE(make_state_dir(made));  // it is there already

  struct stat status {};
  REQUIRE(::stat(made.c_str(), &status) == 0);
  REQUIRE((status.st_mode & 0777) == 0700);
  REQUIRE(make_state_dir("/dev/null/millrace").error().message.find("/dev/null/millrace") != std::string::npos);
}

TEST_CASE("an automatic state directory can be asked for by name", "[settings]") {
  REQUIRE(parse("[daemon]\nstate_dir = \"auto\"")->state_dir == automatic_state_dir());
  REQUIRE(parse("[daemon]\nstate_dir = \"\"")->state_dir.empty());
}

TEST_CASE("an error names file, line and key and says what is wrong", "[settings]") {
  REQUIRE(complaint("\n[limits]\npixels = -3\n") == "millrace.toml:3: limits.pixels: must be at least 1, is -3");
  REQUIRE(complaint("[limits]\npixels = 0") == "millrace.toml:2: limits.pixels: must be at least 1, is 0");
  REQUIRE(complaint("[limits]\nside = 1000001") == "millrace.toml:2: limits.side: must be at most 1000000, is 1000001");
  REQUIRE(complaint("[limits]\nencoded = 0") == "millrace.toml:2: limits.encoded: must be at least 1, is 0");
  REQUIRE(complaint("[limits]\ninline_message = \"4 MiB\"") ==
          "millrace.toml:2: limits.inline_message: must be at most 3 MiB, is 4 MiB");
}

TEST_CASE("a value of the wrong kind is told what it must be and what it is", "[settings]") {
  REQUIRE(complaint("[daemon]\nsocket = 3") ==
          "millrace.toml:2: daemon.socket: must be text in quotes, is a whole number");
  REQUIRE(complaint("[lanes]\ncpu = \"two\"") == "millrace.toml:2: lanes.cpu: must be a whole number, is text");
  REQUIRE(complaint("[lanes]\ncpu = 2.0") ==
          "millrace.toml:2: lanes.cpu: must be a whole number, is a number with a fraction");
  REQUIRE(complaint("[backends]\ncpu = 1") ==
          "millrace.toml:2: backends.cpu: must be true or false, is a whole number");
  REQUIRE(complaint("[files]\nroots = \"/data\"") ==
          "millrace.toml:2: files.roots: must be a list of texts in quotes, is text");
  REQUIRE(complaint("[files]\nroots = [\"/data\", [1]]") ==
          "millrace.toml:2: files.roots: must be a list of texts in quotes, has in it a list");
  REQUIRE(complaint("[lanes]\ncores = [1, true]") ==
          "millrace.toml:2: lanes.cores: must be a list of whole numbers, has in it true or false");
  REQUIRE(complaint("[memory]\nsegments = 1979-05-27") ==
          "millrace.toml:2: memory.segments: must be bytes, or text like \"512 MiB\" or \"2 GB\", is a date or time");
  REQUIRE(complaint("[memory]\nsegments = \"4 gigs\"") ==
          "millrace.toml:2: memory.segments: must be bytes, or text like \"512 MiB\" or \"2 GB\", is \"4 gigs\"");
  REQUIRE(complaint("[daemon]\nlog_level = \"loud\"") ==
          "millrace.toml:2: daemon.log_level: must be \"error\", \"warning\", \"info\" or \"debug\", is \"loud\"");
  REQUIRE(complaint("limits = 3") == "millrace.toml:1: limits: must be a table, [limits], is a whole number");
}

TEST_CASE("a word that is none of those possible is told them", "[settings]") {
  REQUIRE(
      complaint("[cpu]\ntarget = \"sse\"") ==
      "millrace.toml:2: cpu.target: must be \"auto\", \"scalar\", \"avx2\", \"avx512bw\" or \"avx512\", is \"sse\"");
  REQUIRE(complaint("[cpu]\ntarget = 512") ==
          "millrace.toml:2: cpu.target: must be \"auto\", \"scalar\", \"avx2\", \"avx512bw\" or \"avx512\", is a whole "
          "number");
  REQUIRE(complaint("[lanes]\npin = true") ==
          "millrace.toml:2: lanes.pin: must be \"none\", \"auto\", \"node\" or \"core\", is true or false");
  REQUIRE(complaint("[daemon]\nstate_dir = \"var\"") ==
          "millrace.toml:2: daemon.state_dir: must be absolute (begin with /), is var");
  REQUIRE(complaint("[daemon]\nstate_dir = \"\"") == "accepted");
}

TEST_CASE("an unknown key is an error, with what may have been meant", "[settings]") {
  REQUIRE(complaint("[limits]\npixel = 3") ==
          "millrace.toml:2: limits.pixel: no such setting; did you mean limits.pixels?");
  REQUIRE(complaint("[daemon]\nroots = []") ==
          "millrace.toml:2: daemon.roots: no such setting; did you mean files.roots?");
  REQUIRE(complaint("socket = \"/x\"") == "millrace.toml:1: socket: no such setting; did you mean daemon.socket?");
  REQUIRE(complaint("[limit]\n") == "millrace.toml:1: limit: no such table; did you mean limits?");
  REQUIRE(complaint("[limits]\nzygote = 3") ==
          "millrace.toml:2: limits.zygote: no such setting; the example millrace.toml shows all");
  REQUIRE(complaint("[limits]\n\"a\\u001bb\" = 3").find("limits.a\\x1bb: no such setting") != std::string::npos);
}

TEST_CASE("a setting that is gone is passed over with a remark that names its line", "[settings]") {
  const auto settings = parse("[cpu]\nstreams = 1\ntarget = \"avx2\"\nindexed = \"lanes\"\n");

  REQUIRE(settings);
  REQUIRE(settings->remarks ==
          std::vector<std::string>{"millrace.toml:2: cpu.streams: is no setting any more: the daemon has a table of "
                                   "processors instead; take this line out",
                                   "millrace.toml:4: cpu.indexed: is no setting any more: the daemon has a table of "
                                   "processors instead; take this line out"});
  REQUIRE(cpu(settings).target == kernels::Target::kAvx2);
  REQUIRE(parse("")->remarks.empty());
}

TEST_CASE("everything that is wrong is said at once, in the file's order", "[settings]") {
  REQUIRE(complaint("[limits]\nside = 0\nsides = 1\n[daemon]\nsocket = \"here\"\n[lanes]\ncpu = -1\n") ==
          "millrace.toml:2: limits.side: must be at least 1, is 0\n"
          "millrace.toml:3: limits.sides: no such setting; did you mean limits.side?\n"
          "millrace.toml:5: daemon.socket: must be absolute (begin with /), is here\n"
          "millrace.toml:7: lanes.cpu: must be at least 0, is -1");
}

TEST_CASE("what is not TOML is refused with its line", "[settings]") {
  REQUIRE(complaint("[daemon]\nsocket = \n").starts_with("millrace.toml:2: not TOML: "));
  REQUIRE(complaint("[daemon]\n[daemon]\n").starts_with("millrace.toml:2: not TOML: "));
  REQUIRE(complaint("[daemon]\nsocket = 1979-05-27T[\n").starts_with("millrace.toml:2: not TOML: "));
  REQUIRE(complaint("[daemon]\n\nsocket = 07:32:\u01de0Z\n").starts_with("millrace.toml:3: not TOML: "));
  REQUIRE(complaint("\xff\xfe").starts_with("millrace.toml:1: not TOML: "));
}

TEST_CASE("a socket's path must leave room for the hand-off's beside it", "[settings]") {
  const std::string longest = "/" + std::string(107 - 8 - 1, 's');
  REQUIRE(kLongestSocketPath == 107 - 8);

  REQUIRE(complaint("[daemon]\nsocket = \"" + longest + "\"") == "accepted");
  REQUIRE(complaint("[daemon]\nsocket = \"" + longest + "s\"") ==
          "millrace.toml:2: daemon.socket: must have at most 99 bytes (the kernel takes 107, and .handoff comes behind "
          "it), has 100");
  REQUIRE(complaint("[daemon]\nsocket = \"/run/\"") ==
          "millrace.toml:2: daemon.socket: must name a file, is a folder: /run/");
  REQUIRE(complaint("[daemon]\nsocket = \"\"") == "millrace.toml:2: daemon.socket: must name a path, is empty");
  REQUIRE(complaint("[daemon]\nsocket = \"/a\\u0000b\"") ==
          "millrace.toml:2: daemon.socket: must not hold a zero byte");
}

TEST_CASE("settings that do not go together are refused", "[settings]") {
  REQUIRE(complaint("[lanes]\ncpu = 3\ncores = [0, 1]") ==
          "millrace.toml:2: lanes.cpu: must be at most the number of lanes.cores (2), or 0, is 3");
  REQUIRE(complaint("[lanes]\ncores = [1, 1]") == "millrace.toml:2: lanes.cores: must name each core once");
  REQUIRE(complaint("[lanes]\ncores = [-1]") ==
          "millrace.toml:2: lanes.cores: must hold core numbers from 0 to 4095, one is -1");
  REQUIRE(complaint("[backends]\ncpu = false") ==
          "millrace.toml:2: backends.cpu: must be true: there is no other backend");
  REQUIRE(complaint("[files]\nroots = [\"data\"]") ==
          "millrace.toml:2: files.roots: must be absolute (begin with /), is data");
}

TEST_CASE("settings changed after reading are checked again, by key", "[settings]") {
  Settings settings = default_settings();
  settings.socket = "here";
  settings.fetch_threads = 0;

  const Result<void> checked = check_settings(settings, keys());

  REQUIRE_FALSE(checked);
  REQUIRE(checked.error().message ==
          "lanes.fetch_threads: must be at least 1, is 0\ndaemon.socket: must be absolute (begin with /), is here");
}

TEST_CASE("settings printed are read back as the same", "[settings]") {
  Settings settings = default_settings();
  settings.socket = "/tmp/with \"quotes\", a \\ and \u00fc\x01";
  settings.roots = {"/a", "/b\tc"};
  settings.groups.of<CpuSettings>().cores = {5, 6};
  settings.segment_budget = 1234567_B;
  settings.limits.sample.encoded = 3_MiB;
  settings.log_level = LogLevel::kWarning;
  settings.groups.of<CpuSettings>().pin = LanePin::kNode;
  settings.groups.of<CpuSettings>().target = kernels::Target::kScalar;

  const auto again = parse(to_toml(settings, keys()));

  REQUIRE(again);
  REQUIRE(to_toml(*again, keys()) == to_toml(settings, keys()));
  REQUIRE(again->socket == settings.socket);
  REQUIRE(again->roots == settings.roots);
  REQUIRE(again->segment_budget == settings.segment_budget);
  REQUIRE(again->log_level == LogLevel::kWarning);
  REQUIRE(cpu(again).pin == LanePin::kNode);
  REQUIRE(cpu(again).target == kernels::Target::kScalar);
}

// Whatever a row of choices lacks or says twice, comes back as something else.
TEST_CASE("every choice is a word of its own, printed as it is read", "[settings]") {
  const auto level = [](LogLevel one) { return Settings{.log_level = one}; };
  const auto with = [](const CpuSettings& cpu_settings) {
    Settings settings;
    settings.groups.of<CpuSettings>() = cpu_settings;
    return settings;
  };
  const auto pin = [&](LanePin one) { return with({.pin = one}); };
  const auto target = [&](std::optional<kernels::Target> one) { return with({.target = one}); };
  using kernels::Target;

  for (const LogLevel one : {LogLevel::kError, LogLevel::kWarning, LogLevel::kInfo, LogLevel::kDebug})
    REQUIRE(parse(to_toml(level(one), keys()))->log_level == one);
  for (const LanePin one : {LanePin::kNone, LanePin::kAuto, LanePin::kNode, LanePin::kCore})
    REQUIRE(cpu(parse(to_toml(pin(one), keys()))).pin == one);
  REQUIRE(cpu(parse(to_toml(target(std::nullopt), keys()))).target == std::nullopt);
  for (const Target one : kernels::kAllTargets) {
    REQUIRE(cpu(parse(to_toml(target(one), keys()))).target == one);
    REQUIRE(to_toml(target(one), keys()).find("target = \"" + std::string(kernels::name_of(one)) + '"') !=
            std::string::npos);
  }
}

TEST_CASE("the example file shows every setting with its default", "[settings]") {
  const std::string example = read_whole(std::string(MILLRACE_SOURCE_DIR) + "/config/millrace.toml");

  // A developer who changes the table prints the file anew: ninja millrace_print_example, bin/millrace_print_example >
  // config/millrace.toml
  REQUIRE(example == to_toml(default_settings(), keys(), TomlStyle::kExample));
  for (const Key& key : keys().keys())
    REQUIRE(example.find("\n#" + std::string(key.key()) + " = ") != std::string::npos);
  REQUIRE(parse(example));
  const auto in_force = parse(uncommented(example));
  REQUIRE(in_force);
  REQUIRE(to_toml(*in_force, keys()) == to_toml(default_settings(), keys()));
}

TEST_CASE("sizes are read with units and printed without loss", "[settings]") {
  REQUIRE(parse_size("4 GiB") == 4_GiB);
  REQUIRE(parse_size("4GiB") == 4_GiB);
  REQUIRE(parse_size("500 MB") == 500000000_B);
  REQUIRE(parse_size("3 kB") == 3000_B);
  REQUIRE(parse_size("17") == 17_B);
  REQUIRE(parse_size("17 B") == 17_B);
  for (const char* wrong :
       {"", " 4", "GiB", "-4", "4.5 GiB", "4 gib", "4 GiB ", "0x10", "99999999999999999999", "16777216 TiB"})
    REQUIRE_FALSE(parse_size(wrong));
  REQUIRE(size_text(4_GiB) == "4 GiB");
  REQUIRE(size_text(1536_MiB) == "1536 MiB");
  REQUIRE(size_text(4097_B) == "4097");
  REQUIRE(size_text(0_B) == "0");
}

TEST_CASE("automatic shared memory is at most half of /dev/shm", "[settings]") {
  struct statvfs status {};
  REQUIRE(::statvfs("/dev/shm", &status) == 0);

  const auto named = parse("[memory]\nsegments = \"auto\"");
  const auto zero = parse("[memory]\nsegments = 0");

  REQUIRE(named);
  REQUIRE(zero);
  REQUIRE(named->segment_budget == automatic_segment_budget());
  REQUIRE(zero->segment_budget == automatic_segment_budget());
  REQUIRE(named->segment_budget >= 1_MiB);
  if (status.f_blocks > 0)
    REQUIRE(named->segment_budget <= std::max(1_MiB, Bytes{status.f_blocks * status.f_frsize / 2}));
}

TEST_CASE("automatic memory for decoding is at most a quarter of the main memory, and enough for large photographs",
          "[settings]") {
  const auto by_default = parse("");
  const auto named = parse("[memory]\ndecoding = \"auto\"");

  REQUIRE(named->decoding == by_default->decoding);
  REQUIRE(by_default->decoding >= 256_MiB);
  const auto pages = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES));
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  REQUIRE(by_default->decoding <= std::max(256_MiB, Bytes{pages * page / 4}));
  REQUIRE_THAT(parse("[memory]\ndecoding = \"1 MiB\"").error().message, Catch::Contains("at least 32 MiB"));
}

TEST_CASE("a file that cannot be read is an error that names it", "[settings]") {
  const TempFolder folder;
  std::ofstream(folder / "large.toml") << std::string((1_MiB).count + 1, '\n');

  const auto missing = load_settings(folder / "missing.toml", keys());
  const auto a_folder = load_settings(folder.path(), keys());
  const auto large = load_settings(folder / "large.toml", keys());

  REQUIRE(missing.error().code == Code::kNotFound);
  REQUIRE_THAT(missing.error().message, Catch::Contains(folder / "missing.toml") && Catch::Contains("an empty file") &&
                                            Catch::Contains("examples/millrace.toml"));
  REQUIRE(a_folder.error().code == Code::kInvalid);
  REQUIRE(large.error().message == folder / "large.toml" + ": longer than 1 MiB: not a settings file");
}

TEST_CASE("a settings file is read from the disk", "[settings]") {
  const TempFolder folder;
  const std::string path = folder / "m.toml";
  std::ofstream(path) << "[lanes]\ncpu = 5\n[limits]\nslots = 0\n";

  const auto settings = load_settings(path, keys());

  REQUIRE_FALSE(settings);
  REQUIRE(settings.error().message == path + ":4: limits.slots: must be at least 1, is 0");
}

TEST_CASE("a nearest name is near", "[settings]") {
  const std::vector<std::string_view> known{"limits.side", "limits.slots", "daemon.socket"};

  REQUIRE(nearest_name("limits.slot", known) == "limits.slots");
  REQUIRE(nearest_name("limits.sied", known) == "limits.side");
  REQUIRE_FALSE(nearest_name("limits.entirely_else", known));
  REQUIRE_FALSE(nearest_name(std::string(10'000, 's'), known));
}

}  // namespace
}  // namespace millrace
