// Why a program waits: for lanes, processors and devices.
#include <fstream>

#include "tests/support/skip.h"
#include "tests/system/support/users.h"
#include "tests/system/why/why_mill.h"

namespace millrace {
namespace {

// A program that asks for more than the lanes make.
std::function<void()> busy(Session& session, const WhyMill& mill, const std::string& backend = "") {
  return [&session, &mill, backend, asked = 0u]() mutable {
    for (; asked < session.slots(); ++asked) need(session.submit(mill.batch(4, backend)));
    need(session.next());
    --asked;
  };
}

TEST_CASE("a session whose own images fill the lanes is told which step does", "[system]") {
  const WhyMill mill({.side = 900});
  Session session = mill.open();
  const Program loop(busy(session, mill));

  REQUIRE(says_first_of_ours(mill, session.id(), "own_work"));
  const SessionFindings told = mill.last;
  const Finding& own = *finding_of(told, "own_work");
  CHECK_THAT(own.text, Catch::Contains("in decoding: 2 lanes make"));
  CHECK(figure_of(own, "lane_seconds_per_image") > 0);
}

TEST_CASE("another user who has the lanes is named, with both weights", "[system]") {
  if (skipped_without_root("another user's sessions")) return;
  const WhyMill mill({.side = 900}, {.lane_settings = "\n[fair]\nweights = [\"" + std::to_string(kAlice) + "=3\"]\n",
                                     .cache = kNothingKept,
                                     .for_all_users = true});
  Session session = mill.open();
  const Program loop(busy(session, mill));
  std::vector<std::string> wants{"sessions=2", "batch=4", "slots=4"};
  wants.insert(wants.end(), mill.paths.begin(), mill.paths.end());
  const Process alice = mill.daemon.client("work", wants, kAlice);

  REQUIRE(says_first_of_ours(mill, session.id(), "others_have_lanes"));
  const Finding others = *finding_of(mill.last, "others_have_lanes");
  CHECK_THAT(others.text,
             Catch::Contains("of 2 lanes") &&
                 Catch::Contains("the weight of user " + std::to_string(kAlice) + " is 3, and yours is 1"));
}

TEST_CASE("other programs that take the processors are named", "[system]") {
  const WhyMill mill({.side = 900});
  std::vector<Process> burners;
  for (unsigned i = 0; i < 4 * std::thread::hardware_concurrency(); ++i)
    burners.push_back(Process::spawn({.argv = {"sh", "-c", "while :; do :; done"}}));
  Session session = mill.open();
  const Program loop(busy(session, mill));

  REQUIRE(mill.says_first(session.id(), "other_programs"));
  CHECK(figure_of(mill.last.findings[0], "others_processor_share") > 0.1);
}

// Where this process may make control groups of processors: version 2, or version 1.
struct LimitedGroup {
  explicit LimitedGroup(double processors) {
    namespace fs = std::filesystem;
    const std::string name = "/millrace_why_" + std::to_string(::getpid());
    std::error_code failed;
    for (const std::string hierarchy : {"/sys/fs/cgroup", "/sys/fs/cgroup/cpu"}) {
      if (!fs::create_directory(hierarchy + name, failed)) continue;
      path = hierarchy + name;
      const std::string quota = std::to_string(static_cast<int>(processors * 100'000));
      limited =
          say("cpu.max", quota + " 100000") || (say("cpu.cfs_period_us", "100000") && say("cpu.cfs_quota_us", quota));
      if (limited) return;
      fs::remove(path, failed);
    }
  }
  ~LimitedGroup() {
    if (limited) ::rmdir(path.c_str());
  }
  bool say(const std::string& file, const std::string& text) const {
    if (!std::filesystem::exists(path + "/" + file)) return false;
    std::ofstream out(path + "/" + file);
    out << text << std::flush;
    return out.good();
  }

  std::string path;
  bool limited = false;
};

TEST_CASE("cpu.max that stops the daemon is named", "[system]") {
  const LimitedGroup group(0.2);
  if (!group.limited) return skip_loudly("cpu.max (no control group of processors can be made here)");
  const std::string own = std::to_string(::getpid());
  {
    if (!group.say("cgroup.procs", own))
      return skip_loudly("cpu.max (no process can be moved to a control group here)");
    const WhyMill mill({.side = 900});
    const std::string above = std::filesystem::path(group.path).parent_path();
    std::ofstream(above + "/cgroup.procs") << own << std::flush;
    Session session = mill.open();
    const Program loop(busy(session, mill));

    CHECK(mill.says_first(session.id(), "cpu_max"));
  }
}

TEST_CASE("a device that leaves most images to the processor is named, with its reason", "[system]") {
  const WhyMill mill({.side = 500, .png = true}, {.cache = kNothingKept, .fake = "first=1"});
  Session session = mill.open();
  const Program loop(busy(session, mill));

  REQUIRE(says_first_of_ours(mill, session.id(), "device_leaves"));
  const Finding left = *finding_of(mill.last, "device_leaves");
  CHECK_THAT(left.text, Catch::Contains("fake: the made-up device decodes JPEG files alone"));
}

TEST_CASE("what a device does for a session is no work of others on its lanes", "[system]") {
  const WhyMill mill({.side = 900}, {.cache = kNothingKept, .fake = "first=1"});
  Session session = mill.open();
  const Program loop(busy(session, mill));

  REQUIRE(says_first_of_ours(mill, session.id(), "device_busy"));
  CHECK(finding_of(mill.last, "others_have_lanes") == nullptr);
}

TEST_CASE("a device that is lost is named", "[system]") {
  const WhyMill mill({.side = 900}, {.cache = kNothingKept, .fake = "first=1,lose_after=1"});
  Session session = mill.open();
  const Program loop(busy(session, mill));

  REQUIRE(says_first_of_ours(mill, session.id(), "device_lost"));
  CHECK_THAT(finding_of(mill.last, "device_lost")->text, Catch::StartsWith("fake has lost its device"));
}

TEST_CASE("a device that is the slowest part is named", "[system]") {
  const WhyMill mill({.side = 60}, {.cache = kNothingKept, .fake = "first=1,delay_us=100000"});
  Session session = mill.open();
  const Program loop(busy(session, mill));

  CHECK(mill.says_first(session.id(), "device_busy"));
}

}  // namespace
}  // namespace millrace
