#include "daemon/backend/cpu/cpu_backend.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <fstream>
#include <span>
#include <string>
#include <utility>

#include "daemon/backend/cpu/decoders/decoder_table.h"
#include "daemon/backend/cpu/lanes/topology.h"
#include "daemon/backend/words.h"
#include "daemon/observe/trace/points.h"
#include "kernels/base/target.h"

namespace millrace {
namespace {

// One for each processor, but no more than the control group lets compute at once.
std::uint32_t lanes_by_default() {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  const bool known = sched_getaffinity(0, sizeof usable, &usable) == 0;
  const std::uint32_t all =
      known ? static_cast<std::uint32_t>(CPU_COUNT(&usable)) : std::thread::hardware_concurrency();
  const std::uint32_t granted = granted_processors("/sys/fs/cgroup", "/proc/self/cgroup");
  return std::max(1U, granted == 0 ? all : std::min(all, granted));
}

Result<std::uint32_t> lanes_of(const CpuSettings& settings) {
  std::uint32_t lanes = settings.lanes;
  if (lanes == 0)
    lanes = settings.cores.empty() ? lanes_by_default() : static_cast<std::uint32_t>(settings.cores.size());
  if (lanes <= CpuBackend::kMaxLanes) return lanes;
  return Error{Code::kInvalid, std::to_string(lanes) + " CPU lanes: at most " + std::to_string(CpuBackend::kMaxLanes) +
                                   " are possible"};
}

Result<std::vector<LanePlace>> places_of(const CpuSettings& settings, std::uint32_t lanes) {
  std::vector<LanePlace> places(lanes);
  if (!settings.cores.empty()) {
    for (std::uint32_t i = 0; i < lanes; ++i) places[i].processors = {settings.cores[i % settings.cores.size()]};
  } else if (settings.pin != LanePin::kNone) {
    MILLRACE_TRY(const std::vector<Processor> usable, usable_processors());
    places = lane_places(usable, lanes, settings.pin);
  }
  return places;
}

Result<void> pin(std::thread& thread, const LanePlace& place) {
  if (place.processors.empty()) return {};
  cpu_set_t cores;
  CPU_ZERO(&cores);
  for (const int core : place.processors) {
    const bool possible = core >= 0 && core < CPU_SETSIZE;
    if (possible) CPU_SET(static_cast<unsigned>(core), &cores);
    if (!possible || pthread_setaffinity_np(thread.native_handle(), sizeof cores, &cores) != 0)
      return Error{Code::kInvalid,
                   "a CPU lane cannot be pinned to core " + std::to_string(core) + ": this process may not use it"};
  }
  return {};
}

// The processor's name as the kernel says it.
std::string processor_name() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

Result<CpuVariant> variant_of(const CpuSettings& settings) {
  if (!settings.target) return CpuVariant{};
  if (kernels::is_available(*settings.target)) return CpuVariant{.target = *settings.target};
  return Error{Code::kInvalid, "cpu.target: this processor lacks " + std::string(kernels::name_of(*settings.target)) +
                                   "; set \"auto\", or what it has"};
}

// Whose way to decode it is, by the table.
std::string row_text(const CpuVariant& variant) {
  const kernels::jpeg::ProcessorRow row = kernels::jpeg::row_of(kernels::jpeg::this_processor(), variant.target);
  const std::string name(row.name);
  if (row.is_measured) return name;
  return name + ", not measured on this model with " + std::string(kernels::name_of(variant.target)) +
         ": the pixels are the same, and it may be slower than it could be";
}

Result<std::optional<DecoderProgram>> decoder_of(const CpuSettings& settings, const InForce<Limits>& limits) {
  if (settings.isolation == Isolation::kNone) return std::optional<DecoderProgram>();
  MILLRACE_TRY(DecoderProgram program, decoder_program(settings.decoder, limits));
  return std::optional(std::move(program));
}

std::string isolation_text(Isolation isolation) {
  return isolation == Isolation::kProcess
             ? "libjpeg-turbo, libspng, libwebp, libtiff, libavif and libde265 run in processes of their own, shut in"
             : "none: all decoders run in the daemon";
}

BackendInfo info_of(std::uint32_t lanes, const CpuVariant& variant, std::span<const LanePlace> places,
                    std::string indexes, Isolation isolation) {
  BackendInfo info{.name = "cpu",
                   .device = processor_name(),
                   .detail = std::string(kernels::name_of(variant.target)) +
                             (isolation == Isolation::kProcess ? ", libraries in processes of their own" : ""),
                   .lanes = lanes,
                   .formats = decoded_formats(),
                   .properties = {{"decoding", name_of(variant)},
                                  {"decodes as", row_text(variant)},
                                  {"isolation", isolation_text(isolation)},
                                  {"placement", describe(places)},
                                  {"seek indexes", std::move(indexes)}},
                   .copies_files = isolation == Isolation::kProcess};
  for (const kernels::Target target : kernels::available_targets())
    info.instruction_sets.emplace_back(kernels::name_of(target));
  return info;
}

// What the outcomes say, told further.
JobUse use_of(std::span<const SampleOutcome> outcomes, const CachedMaker::Taken& taken,
              std::chrono::nanoseconds lane_cpu, std::chrono::nanoseconds process_cpu) {
  constexpr std::chrono::nanoseconds kNone{0};
  JobUse use{.lane_cpu = lane_cpu, .process_cpu = process_cpu, .saved = taken.saved, .stages = taken.stages};
  std::chrono::nanoseconds decode{0}, transform{0};
  for (const SampleOutcome& outcome : outcomes) {
    decode += outcome.decode;
    transform += outcome.transform;
  }
  const std::chrono::nanoseconds packing = taken.stages.of(Stage::kPack);
  use.stages.of(Stage::kDecode) = std::max(decode - packing, kNone);
  use.stages.of(Stage::kResample) = std::max(transform - (taken.stages.sum() - packing), kNone);
  return use;
}

}  // namespace

Result<std::uint64_t> most_decoders(const CpuSettings& settings) {
  if (!settings.wanted || settings.isolation == Isolation::kNone) return std::uint64_t{0};
  MILLRACE_TRY(const std::uint32_t lanes, lanes_of(settings));
  return std::uint64_t{lanes} * DecoderChildren::kMost;
}

bool wants_cpu(const Settings& settings) {
  return settings.groups.of<CpuSettings>().wanted;
}

Result<std::vector<std::unique_ptr<Backend>>> make_cpu_backends(const Settings& settings,
                                                                const BackendServices& services) {
  std::vector<std::unique_ptr<Backend>> one(1);
  MILLRACE_TRY(one[0], CpuBackend::create(settings.groups.of<CpuSettings>(), services));
  return one;
}

Result<std::unique_ptr<Backend>> CpuBackend::create(const CpuSettings& settings, const BackendServices& services) {
  MILLRACE_TRY(const std::uint32_t lanes, lanes_of(settings));
  MILLRACE_TRY(const std::vector<LanePlace> places, places_of(settings, lanes));
  MILLRACE_TRY(const CpuVariant variant, variant_of(settings));
  std::string indexes = services.cache == nullptr ? "none" : services.cache->whereabouts();
  MILLRACE_TRY(std::optional<DecoderProgram> decoder, decoder_of(settings, services.limits));
  std::unique_ptr<CpuBackend> backend(new CpuBackend(
      info_of(lanes, variant, places, std::move(indexes), settings.isolation), variant, std::move(decoder), services));
  MILLRACE_TRY_VOID(backend->start(places));
  return std::unique_ptr<Backend>(std::move(backend));
}

CpuBackend::CpuBackend(BackendInfo info, const CpuVariant& variant, std::optional<DecoderProgram> decoder,
                       const BackendServices& services)
    : info_(std::move(info)),
      variant_(variant),
      limits_(services.limits),
      decoder_(std::move(decoder)),
      cache_(services.cache),
      counters_(services.counters),
      queue_(queue_depth().jobs, queue_depth().urgent) {}

Result<void> CpuBackend::start(const std::vector<LanePlace>& places) {
  Result<void> pinned;
  for (std::uint32_t i = 0; i < info_.lanes && pinned; ++i) {
    std::thread& lane = threads_.emplace_back([this] { run_lane(); });
    pthread_setname_np(lane.native_handle(), ("mr-lane-" + std::to_string(i)).c_str());
    pinned = pin(lane, places[i]);
  }
  placed_.count_down();
  return pinned;
}

Result<void> CpuBackend::can_make(const SampleFacts& facts, const Recipe&) const {
  return check_decoder(facts.source.format);
}

void CpuBackend::shutdown() {
  std::call_once(shut_down_, [this] {
    queue_.close();
    for (std::thread& thread : threads_) thread.join();
  });
}

void CpuBackend::run_lane() {
  placed_.wait();
  std::optional<DecoderChildren> children;
  if (decoder_) children.emplace(*decoder_, counters_);
  ImageWorkspace workspace(JpegPath::kFastest, variant_, cache_, children ? &*children : nullptr);
  CachedMaker maker(workspace, limits_, variant_.target);
  LaneClocks clocks{.processes = children ? &*children : nullptr};
  const auto idle = [this] { return queue_.empty(); };
  const auto stopped = [this] { return queue_.closed(); };
  while (std::optional<QueuedDecode> next = queue_.pop()) {
    run(*std::exchange(next, std::nullopt), maker, clocks);
    // Nothing of the job is held any more, and nobody waits: what this takes is no session's.
    if (!maker.finish(idle, stopped)) continue;
    clocks.used.lap();
    clocks.lap_of_processes();
  }
}

void CpuBackend::run(QueuedDecode queued, CachedMaker& maker, LaneClocks& clocks) {
  DecodeJob& job = queued.job;
  std::vector<SampleOutcome> outcomes(job.tasks.size());
  auto recorded = std::make_optional<trace::Work>(trace::What::kJobBegins,
                                                  trace::Subject{job.owner.user, job.owner.session}, job.tasks.size());
  const auto begun = std::chrono::steady_clock::now();
  auto now = begun;
  const auto make_one = [&](std::size_t i) {
    const auto since = now;
    const bool makes_way = !job.urgent && queue_.has_urgent();
    const bool is_over = since != begun && (makes_way || since - begun >= job.turn);
    outcomes[i] =
        is_over ? SampleOutcome{.index = job.tasks[i].index, .not_begun = true} : make(job, job.tasks[i], maker);
    outcomes[i].queued = since - queued.since;
    now = std::chrono::steady_clock::now();
    // What the cache took of it as well. `transform` is an estimate.
    outcomes[i].decode = std::max(now - since - outcomes[i].transform, std::chrono::nanoseconds{0});
    if (recorded->is_recorded() && !outcomes[i].not_begun)
      recorded->add({.what = trace::What::kImage,
                     .kind = static_cast<std::uint8_t>(job.tasks[i].image.info.format),
                     .failed = outcomes[i].error.has_value(),
                     .index = job.tasks[i].index,
                     .at = since.time_since_epoch().count(),
                     .until = now.time_since_epoch().count(),
                     .text = info_.name});
  };
  std::vector<std::size_t> put_off;
  const bool has_others = job.tasks.size() > 1;
  for (std::size_t i = 0; i < job.tasks.size(); ++i) {
    if (has_others && maker.is_being_made(job.tasks[i])) {
      put_off.push_back(i);
    } else {
      make_one(i);
    }
  }
  for (const std::size_t i : put_off) make_one(i);
  const CachedMaker::Taken taken = maker.take();
  if (job.use) *job.use = use_of(outcomes, taken, clocks.used.lap(), clocks.lap_of_processes());
  if (counters_ != nullptr) counters_->add(MetricId::lane_runnable, clocks.runnable.lap());
  recorded.reset();
  queue_.finished();  // before done(): who is told so may submit the next at once
  job.done(std::move(job.tasks), std::move(outcomes));
}

SampleOutcome CpuBackend::make(const DecodeJob& job, SampleTask& task, CachedMaker& maker) const {
  static const StopFlag kNeverStopped;
  const StopFlag& stop = job.stop ? *job.stop : kNeverStopped;
  if (queue_.closed() || stop.stopped()) return {.index = task.index, .error = cancelled_error()};
  SampleOutcome outcome = maker.make(task, *job.recipe, job.fidelity, stop);
  // The host lacks what its decoder process takes: it comes again, and others have their turn.
  if (outcome.error && outcome.error->code == Code::kUnavailable) return {.index = task.index, .not_begun = true};
  return outcome;
}

}  // namespace millrace
