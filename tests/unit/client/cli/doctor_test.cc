// What `millrace doctor` says of a host, of files that look like the kernel's.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "client/cli/commands/host_checks.h"
#include "client/cli/text/findings.h"
#include "tests/support/host/temp_folder.h"

using namespace millrace;
using namespace millrace::cli;

namespace {

std::string value_named(const Findings& findings, const std::string& name) {
  const auto found =
      std::find_if(findings.begin(), findings.end(), [&](const auto& finding) { return finding.name == name; });
  return found == findings.end() ? "not there" : found->value;
}

Verdict verdict_named(const Findings& findings, const std::string& name) {
  const auto found =
      std::find_if(findings.begin(), findings.end(), [&](const auto& finding) { return finding.name == name; });
  REQUIRE(found != findings.end());
  return found->verdict;
}

}  // namespace

TEST_CASE("the doctor knows a processor by what the kernel says of it", "[cli]") {
  const TempFolder folder;
  const auto with_flags = [&](const std::string& flags) {
    std::ofstream(folder.path() + "/cpuinfo")
        << "processor\t: 0\nmodel name\t: A Processor\nmodel\t\t: 7\nflags\t\t: fpu " << flags << "\n";
    return check_host({.cpuinfo = folder.path() + "/cpuinfo"});
  };

  REQUIRE_THAT(value_named(with_flags("avx2"), "processor"), Catch::StartsWith("A Processor, "));
}

TEST_CASE("the doctor tells the instruction sets that the daemon found, and what it means to have none", "[cli]") {
  REQUIRE(check_instruction_sets({"scalar", "avx2", "avx512"}).value == "avx512, avx2");
  REQUIRE(check_instruction_sets({"scalar", "avx2"}).value == "avx2");
  REQUIRE(check_instruction_sets({"scalar"}).verdict == Verdict::kNote);
}

TEST_CASE("the doctor finds problems where things are missing, and says what to do", "[cli]") {
  const TempFolder folder;

  const Findings findings = check_host({.cpuinfo = folder.path() + "/none",
                                        .mounts = folder.path() + "/none",
                                        .shared_memory = folder.path() + "/none"});

  REQUIRE(verdict_named(findings, "shared memory") == Verdict::kProblem);
  REQUIRE(verdict_named(findings, "huge pages") == Verdict::kNote);
  REQUIRE_FALSE(healthy(findings));
  for (const auto& finding : findings) REQUIRE(finding.advice.empty() == (finding.verdict == Verdict::kFine));
}

TEST_CASE("the doctor knows from its mount whether shared memory may have huge pages", "[cli]") {
  const TempFolder folder;
  const std::string first = "proc /proc proc rw 0 0\ntmpfs " + folder.path() + " tmpfs rw,size=64m 0 0\n";
  const auto huge_pages = [&](const std::string& mounts) {
    std::ofstream(folder.path() + "/mounts") << mounts;
    return check_host({.mounts = folder.path() + "/mounts", .shared_memory = folder.path()});
  };

  REQUIRE(value_named(huge_pages(first), "huge pages") == folder.path() + ": never");
  const Findings over = huge_pages(first + "tmpfs " + folder.path() + " tmpfs rw,huge=advise,size=64m 0 0\n");
  REQUIRE(value_named(over, "huge pages") == folder.path() + ": advise");
  REQUIRE(verdict_named(over, "huge pages") == Verdict::kFine);
  REQUIRE(verdict_named(huge_pages("elephants"), "huge pages") == Verdict::kNote);
}

TEST_CASE("the doctor tells of GPUs that the daemon does not use, and of drivers that are too old", "[cli]") {
  const TempFolder folder;
  const HostPaths paths{.nvidia = folder.path()};
  REQUIRE(check_gpus(false, paths).empty());
  std::filesystem::create_directories(folder.path() + "/gpus/0000:41:00.0");
  std::filesystem::create_directories(folder.path() + "/gpus/0000:61:00.0");
  const auto of_driver = [&](const std::string& version, bool used) {
    std::ofstream(folder.path() + "/version")
        << "NVRM version: NVIDIA UNIX x86_64 Kernel Module  " << version << "  Release Build\nGCC version: 12.2.0\n";
    return check_gpus(used, paths);
  };

  const Findings fine = of_driver("580.65.06", true), unused = of_driver("580.65.06", false),
                 old = of_driver("575.51", true);

  REQUIRE(value_named(fine, "GPUs") == "2 of NVIDIA's, driver 580.65.06");
  REQUIRE(verdict_named(fine, "GPUs") == Verdict::kFine);
  REQUIRE_THAT(unused[0].advice, Catch::Contains("backends.cuda"));
  REQUIRE_THAT(old[0].advice, Catch::Contains("580"));
}
