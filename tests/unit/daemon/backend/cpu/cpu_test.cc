// What only the CPU backend has: lanes and cores.
#include <sched.h>

#include <catch2/catch.hpp>

#include "daemon/backend/cpu/cpu_backend.h"
#include "daemon/backend/cpu/lanes/topology.h"
#include "tests/conformance/bench_of_backend.h"
#include "tests/support/skip.h"

namespace millrace {
namespace {

// That a lane finishes a job on.
int processor_of_a_job(Backend& backend) {
  JobOnTheBench bench = std::move(small_jobs(1, 1)[0]);
  Collector collector;
  int ran_on = -1;
  DecodeJob job = bench.job(collector);
  job.done = [&, keep = std::move(job.done)](std::vector<SampleTask> tasks, std::vector<SampleOutcome> outcomes) {
    ran_on = sched_getcpu();
    keep(std::move(tasks), std::move(outcomes));
  };
  REQUIRE(backend.try_submit(std::move(job)));
  collector.wait_for(1);
  return ran_on;
}

}  // namespace

TEST_CASE(
    "the CPU backend has a lane a usable processor, as far as its control group grants time, unless told otherwise",
    "[backend]") {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  REQUIRE(sched_getaffinity(0, sizeof cores, &cores) == 0);

  const std::uint32_t by_default = (*CpuBackend::create({}))->info().lanes;
  const std::uint32_t told = (*CpuBackend::create({.lanes = 5}))->info().lanes;

  const std::uint32_t granted = granted_processors("/sys/fs/cgroup", "/proc/self/cgroup");
  const auto usable = static_cast<std::uint32_t>(CPU_COUNT(&cores));
  REQUIRE(by_default == (granted == 0 ? usable : std::min(usable, granted)));
  REQUIRE(told == 5);
}

TEST_CASE("the time limit of an image holds while it is turned, resampled and stored, too", "[backend]") {
  const std::unique_ptr<Backend> backend =
      *CpuBackend::create({.lanes = 1}, {.limits = Limits{.sample = {.time = std::chrono::milliseconds(1)}}});
  const auto filter = GENERATE(Filter::kNearest, Filter::kBilinear, Filter::kLanczos);
  const auto format = GENERATE(ImageFormat::kJpeg, ImageFormat::kPng, ImageFormat::kWebp);
  const auto fidelity = GENERATE(Fidelity::kExact, Fidelity::kFast);
  JobOnTheBench bench(Recipe{.filter = filter});
  EncodedImage image = image_of(format, 16, 16);
  const SampleGeometry geometry = resized_whole(image, {6'000, 6'000});
  bench.add(std::move(image), geometry);
  Collector collector;
  DecodeJob job = bench.job(collector);
  job.fidelity = fidelity;

  REQUIRE(backend->try_submit(std::move(job)));

  const Finished finished = collector.wait_for_one();
  REQUIRE(finished.outcomes[0].error);
  REQUIRE(finished.outcomes[0].error->code == Code::kDeadline);
}

TEST_CASE("a lane begins no further image of a job that has had its turn", "[backend]") {
  const std::unique_ptr<Backend> backend = *CpuBackend::create({.lanes = 1});
  JobOnTheBench bench = std::move(small_jobs(1, 3)[0]);
  Collector collector;
  DecodeJob job = bench.job(collector);
  job.turn = std::chrono::milliseconds(0);
  std::vector<SampleOutcome> got;
  job.done = [&, keep = std::move(job.done)](std::vector<SampleTask> tasks, std::vector<SampleOutcome> outcomes) {
    got = outcomes;
    keep(std::move(tasks), std::move(outcomes));
  };

  REQUIRE(backend->try_submit(std::move(job)));
  collector.wait_for(1);
  backend->shutdown();

  REQUIRE(got.size() == 3);
  CHECK_FALSE(got[0].error);
  CHECK_FALSE(got[0].not_begun);
  for (const std::size_t i : {1, 2}) {
    CHECK(got[i].not_begun);
    CHECK(got[i].index == i);
  }
}

TEST_CASE("CPU lanes run on the cores that they are pinned to", "[backend]") {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  REQUIRE(sched_getaffinity(0, sizeof cores, &cores) == 0);
  int last = CPU_SETSIZE - 1;
  while (!CPU_ISSET(static_cast<unsigned>(last), &cores)) --last;
  const std::unique_ptr<Backend> backend = *CpuBackend::create({.cores = {last}});

  const int ran_on = processor_of_a_job(*backend);

  REQUIRE(ran_on == last);
  REQUIRE(backend->info().lanes == 1);
}

TEST_CASE("a lane tied to a core stays there", "[backend]") {
  const std::vector<Processor> usable = *usable_processors();
  const std::unique_ptr<Backend> backend = *CpuBackend::create({.lanes = 1, .pin = LanePin::kCore});

  const int ran_on = processor_of_a_job(*backend);

  const auto on = std::find_if(usable.begin(), usable.end(),
                               [&](const Processor& processor) { return processor.number == ran_on; });
  REQUIRE(on != usable.end());
  REQUIRE(on->core == usable.front().core);
}

TEST_CASE("the backend says how it decodes, why, and where its lanes are", "[backend]") {
  const BackendInfo info = (*CpuBackend::create({.lanes = 1, .target = kernels::Target::kScalar}))->info();

  REQUIRE(info.detail == "scalar");
  REQUIRE(info.properties[0] == std::pair<std::string, std::string>("decoding", "scalar"));
  REQUIRE(info.properties[1] == std::pair<std::string, std::string>(
                                    "decodes as",
                                    "any processor, not measured on this model with scalar: the pixels are the "
                                    "same, and it may be slower than it could be"));
  REQUIRE(info.properties[2].first == "isolation");
  REQUIRE(info.properties[3] == std::pair<std::string, std::string>("placement", "not pinned"));
}

TEST_CASE("lanes decode as the table says of the processor and the best target that it has", "[backend]") {
  using namespace kernels;
  const BackendInfo info = (*CpuBackend::create({.lanes = 1}))->info();

  const jpeg::ProcessorRow row = jpeg::row_of(jpeg::this_processor(), best_target());
  REQUIRE(info.detail == name_of(best_target()));
  REQUIRE(info.properties[0].second == name_of(CpuVariant{best_target(), row.way}));
  REQUIRE(info.properties[1].second.starts_with(row.name));
}

TEST_CASE("a target that the processor lacks is refused by name", "[backend]") {
  if (kernels::is_available(kernels::Target::kAvx512)) return skip_loudly("the refusal: this processor has avx512");

  const Result<std::unique_ptr<Backend>> backend = CpuBackend::create({.target = kernels::Target::kAvx512});

  REQUIRE_FALSE(backend);
  REQUIRE(backend.error().code == Code::kInvalid);
  REQUIRE(backend.error().message == "cpu.target: this processor lacks avx512; set \"auto\", or what it has");
}

TEST_CASE("a core that cannot be used is an error that names it", "[backend]") {
  const Result<std::unique_ptr<Backend>> backend = CpuBackend::create({.cores = {100'000}});

  REQUIRE_FALSE(backend);
  REQUIRE(backend.error().code == Code::kInvalid);
  REQUIRE(backend.error().message.find("100000") != std::string::npos);
}

}  // namespace millrace
