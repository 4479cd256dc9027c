#include "tests/conformance/echo_backend/echo_backend.h"

#include <string>
#include <utility>

#include "daemon/backend/cpu/decoders/decoder_table.h"
#include "daemon/backend/words.h"
#include "kernels/cpu/orient.h"
#include "kernels/cpu/resample.h"
#include "kernels/cpu/store.h"

namespace millrace {
namespace {

const Key kKeys[] = {
    {"echo.devices", number(in_group<&EchoSettings::devices>, 0, 8), "How many there are. 0: none."},
};
constexpr KeyGroup kGroups[] = {{"echo", "The echo backend."}};

}  // namespace

SettingsPart echo_settings() {
  return {.keys = kKeys, .groups = kGroups};
}

bool wants_echo(const Settings& settings) {
  return settings.groups.of<EchoSettings>().devices > 0;
}

Result<std::vector<std::unique_ptr<Backend>>> make_echo_backends(const Settings& settings,
                                                                 const BackendServices& services) {
  std::vector<std::unique_ptr<Backend>> devices;
  for (std::uint32_t i = 0; i < settings.groups.of<EchoSettings>().devices; ++i)
    devices.push_back(std::make_unique<EchoBackend>(i, services.limits));
  return devices;
}

EchoBackend::EchoBackend(std::uint32_t number, InForce<Limits> limits)
    : number_(number), limits_(std::move(limits)), device_([this] { run_device(); }) {}

BackendInfo EchoBackend::info() const {
  return {.name = "echo:" + std::to_string(number_),
          .device = "a thread",
          .lanes = 1,
          .formats = decoded_formats(),
          .by_pin_only = true};
}

Result<void> EchoBackend::can_make(const SampleFacts& facts, const Recipe& recipe) const {
  if (recipe.patches) return Error{Code::kUnsupported, "it stores no patches"};
  if (!recipe.views.empty()) return Error{Code::kUnsupported, "it makes one view of a sample"};
  if (facts.geometry.canvas) return Error{Code::kUnsupported, "it does not pad"};
  if (facts.geometry.filter) return Error{Code::kUnsupported, "it draws no filters"};
  if (is_augmented(recipe)) return Error{Code::kUnsupported, "it does no steps of augmentation, nor erasing"};
  if (facts.source.has.passes) return Error{Code::kUnsupported, "it takes no progressive or interlaced files"};
  return {};
}

bool EchoBackend::try_submit(DecodeJob&& job) {
  {
    MutexLock lock(mutex_);
    if (closed_ || in_it_ == queue_depth().jobs) return false;
    ++in_it_;
    queue_.push_back({std::move(job), Clock::now()});
  }
  changed_.notify_one();
  return true;
}

void EchoBackend::shutdown() {
  std::call_once(shut_down_, [this] {
    {
      MutexLock lock(mutex_);
      closed_ = true;
    }
    changed_.notify_all();
    device_.join();
  });
}

void EchoBackend::run_device() {
  Tools tools;
  Queued queued;
  while (next(queued)) {
    std::vector<SampleOutcome> outcomes;
    for (const SampleTask& task : queued.job.tasks) outcomes.push_back(make(queued, task, tools));
    {
      MutexLock lock(mutex_);
      --in_it_;  // before done(): who is told so may submit the next at once
    }
    DecodeJob job = std::exchange(queued.job, {});  // what it keeps alive goes with it
    job.done(std::move(job.tasks), std::move(outcomes));
  }
}

bool EchoBackend::next(Queued& queued) {
  MutexLock lock(mutex_);
  while (queue_.empty() && !closed_) changed_.wait(mutex_);
  if (queue_.empty()) return false;
  queued = std::move(queue_.front());
  queue_.pop_front();
  return true;
}

SampleOutcome EchoBackend::make(const Queued& queued, const SampleTask& task, Tools& tools) const {
  const Clock::time_point begun = Clock::now();
  SampleOutcome outcome{.index = task.index, .queued = begun - queued.since};
  bool stopped = queued.job.stop && queued.job.stop->stopped();
  {
    MutexLock lock(mutex_);
    stopped = stopped || closed_;
  }
  const Result<void> made = stopped ? Result<void>(cancelled_error()) : try_make(queued.job, task, tools);
  if (!made) outcome.error = made.error();
  // It takes no kept forms.
  outcome.read_again = !made && !stopped && task.image.kept && task.image.bytes.size() == 0;
  outcome.decode = Clock::now() - begun;
  return outcome;
}

Result<void> EchoBackend::try_make(const DecodeJob& job, const SampleTask& task, Tools& tools) const {
  const Clock::time_point deadline = Clock::now() + limits_.now().sample.time;
  const SourceInfo& info = task.image.info;
  const Recipe& recipe = *job.recipe;
  MILLRACE_TRY_VOID(can_make({info, task.geometry, job.fidelity}, recipe));
  MILLRACE_TRY_VOID(check_task(task, recipe, limits_.now().sample));
  MILLRACE_TRY_VOID(check_on_host(task, recipe));

  const kernels::Size stored = in_kernels(info.stored);
  MILLRACE_TRY(const kernels::U8View picture, decoder_of(info.format)
                                                  ->decode({task.image.bytes.view(), stored, kernels::whole(stored),
                                                            deadline, nullptr, info.codec.at_most},
                                                           tools.decoded));
  if (Clock::now() > deadline) return deadline_error();

  const kernels::Orientation orientation = kernels::orientation_of(info.orientation);
  const kernels::Size upright = kernels::oriented(stored, orientation);
  const std::ptrdiff_t stride = std::ptrdiff_t{upright.width} * picture.channels;
  std::uint8_t* const memory = tools.turned.reserve(static_cast<std::size_t>(stride * upright.height));
  if (memory == nullptr) return memory_error();
  const kernels::MutableU8View turned{memory, upright.width, upright.height, picture.channels, stride};
  kernels::orient(picture, orientation, turned);

  const kernels::StoreTable table(store_spec(recipe));
  kernels::ImageStore store(table, task.out.view(), in_kernels(task.geometry.output()), picture.channels,
                            flip_of(task.geometry), tools.arithmetic);
  kernels::resample(tools.arithmetic.plan(resample_spec(task.geometry, recipe, picture.channels)),
                    kernels::U8View(turned).crop(in_kernels(task.geometry.crop)), tools.arithmetic, store);
  return {};
}

}  // namespace millrace
