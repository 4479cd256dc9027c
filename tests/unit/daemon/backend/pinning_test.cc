// Which processors lanes get, on machines made up by hwloc, and what the control group grants.
#include <sched.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <set>

#include "daemon/backend/cpu/lanes/pinning.h"
#include "daemon/backend/cpu/lanes/topology.h"
#include "tests/support/host/temp_folder.h"

namespace millrace {
namespace {

std::vector<Processor> machine(const std::string& description) {
  const Result<std::vector<Processor>> processors = synthetic_processors(description);
  REQUIRE(processors);
  return *processors;
}

std::vector<int> order_of(const std::vector<Processor>& usable) {
  std::vector<int> numbers;
  for (const Processor& processor : filling_order(usable)) numbers.push_back(processor.number);
  return numbers;
}

TEST_CASE("every core gets a lane before SMT siblings do", "[pinning]") {
  REQUIRE(order_of(machine("core:3 pu:2")) == std::vector{0, 2, 4, 1, 3, 5});
}

TEST_CASE("NUMA nodes are filled in turns", "[pinning]") {
  REQUIRE(order_of(machine("numa:2 core:2 pu:2")) == std::vector{0, 4, 2, 6, 1, 5, 3, 7});
}

TEST_CASE("only what the process may use is filled", "[pinning]") {
  std::vector<Processor> usable = machine("numa:2 core:2 pu:2");
  std::erase_if(usable, [](const Processor& processor) { return processor.number < 3; });

  REQUIRE(order_of(usable) == std::vector{3, 4, 6, 5, 7});
}

TEST_CASE("a lane on a core has the core's siblings, and further lanes come around again", "[pinning]") {
  const std::vector<LanePlace> places = lane_places(machine("numa:2 core:1 pu:2"), 5, LanePin::kCore);

  REQUIRE(places.size() == 5);
  REQUIRE(places[0].processors == std::vector{0, 1});
  REQUIRE(places[1].processors == std::vector{2, 3});
  REQUIRE(places[1].node == 1);
  REQUIRE(places[4].processors == places[0].processors);
}

TEST_CASE("auto ties lanes to nodes where there are several, and else not at all", "[pinning]") {
  const std::vector<LanePlace> two_nodes = lane_places(machine("numa:2 core:2 pu:1"), 3, LanePin::kAuto);
  const std::vector<LanePlace> one_node = lane_places(machine("numa:1 core:4 pu:1"), 3, LanePin::kAuto);

  REQUIRE(two_nodes[0].processors == std::vector{0, 1});
  REQUIRE(two_nodes[1].processors == std::vector{2, 3});
  REQUIRE(two_nodes[2].processors == std::vector{0, 1});
  REQUIRE(describe(two_nodes) == "lanes 0, 2: node 0, processors 0, 1; lane 1: node 1, processors 2, 3");
  for (const LanePlace& place : one_node) REQUIRE(place.processors.empty());
  REQUIRE(describe(one_node) == "not pinned");
}

TEST_CASE("without pinning the kernel chooses, however many nodes there are", "[pinning]") {
  for (const LanePlace& place : lane_places(machine("numa:4 core:2 pu:2"), 16, LanePin::kNone))
    REQUIRE(place.processors.empty());
}

TEST_CASE("a machine of a thousand processors is divided evenly", "[pinning]") {
  std::vector<int> lanes_of_node(8);
  for (const LanePlace& place : lane_places(machine("numa:8 core:64 pu:2"), 1024, LanePin::kNode))
    ++lanes_of_node[static_cast<std::size_t>(place.node)];

  for (const int lanes : lanes_of_node) REQUIRE(lanes == 128);
}

TEST_CASE("what is no topology is refused", "[pinning]") {
  REQUIRE(synthetic_processors("elephants:3").error().code == Code::kInvalid);
}

TEST_CASE("this machine's usable processors are those of its affinity", "[pinning]") {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  REQUIRE(sched_getaffinity(0, sizeof mask, &mask) == 0);

  const Result<std::vector<Processor>> usable = usable_processors();

  REQUIRE(usable);
  std::set<int> numbers;
  for (const Processor& processor : *usable) {
    REQUIRE(CPU_ISSET(static_cast<unsigned>(processor.number), &mask));
    numbers.insert(processor.number);
  }
  REQUIRE(numbers.size() == static_cast<std::size_t>(CPU_COUNT(&mask)));
}

class ControlGroups {
 public:
  explicit ControlGroups(const std::string& own) { write("own", own); }
  ControlGroups& with(const std::string& group, const std::string& limit) {
    std::filesystem::create_directories(folder_ / group);
    write(group + "/cpu.max", limit);
    return *this;
  }
  std::uint32_t granted() const { return granted_processors(folder_.path(), folder_ / "own"); }

 private:
  void write(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name) << text; }
  TempFolder folder_;
};

TEST_CASE("the least share of time of all levels counts, rounded up", "[pinning]") {
  ControlGroups groups("0::/a/b\n");
  groups.with("a", "250000 100000\n").with("a/b", "max 100000\n");

  REQUIRE(groups.granted() == 3);
  REQUIRE(groups.with("a/b", "50000 100000\n").granted() == 1);
}

TEST_CASE("no share of time, or nonsense, is no limit", "[pinning]") {
  REQUIRE(ControlGroups("0::/\n").granted() == 0);
  REQUIRE(ControlGroups("0::/a\n").with("a", "max 100000\n").granted() == 0);
  REQUIRE(ControlGroups("0::/a\n").with("a", "-3 0\n").granted() == 0);
  REQUIRE(ControlGroups("0::/a\n").with("a", "elephants").granted() == 0);
}

}  // namespace
}  // namespace millrace
