#include "client/cli/folder_pass.h"

#include "client/cli/interrupt.h"
#include "client/cli/text/bad_lines.h"
#include "client/cli/text/progress.h"
#include "client/cli/text/skipped_files.h"

namespace millrace::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kBatch = 64;

Result<void> go_through(Epoch& epoch, std::uint64_t total, const FolderPass& pass, PassOutcome& outcome) {
  Progress progress(progress_style(pass.quiet));
  BadLines bad_lines;
  const auto began = Clock::now();
  auto deadline = began + kPatience;
  while (!interrupted()) {
    auto batch = epoch.next(kLookEvery);
    outcome.elapsed = Clock::now() - began;
    if (!batch && batch.error().code == Code::kDeadline && Clock::now() < deadline) continue;
    if (!batch) return batch.error();
    if (!*batch) break;
    if ((*batch)->failure) return *(*batch)->failure;
    const TensorView& tensor = (*batch)->tensor;
    outcome.images += tensor.samples();
    for (std::size_t i = 0; i < tensor.samples(); ++i) outcome.unpacked.add(tensor.sample(i).unpacked);
    outcome.bad += (*batch)->bad;
    for (const SampleError& error : (*batch)->errors)
      if (pass.lists_bad) bad_lines.add(error, progress);
    deadline = Clock::now() + kPatience;
    progress.update({.title = pass.title,
                     .done = outcome.images,
                     .total = total,
                     .bytes = 0,
                     .bad = outcome.bad,
                     .elapsed = outcome.elapsed});
  }
  progress.clear();
  bad_lines.finish();
  return {};
}

}  // namespace

Recipe tiny_recipe() {
  return {.resize = ExactSize{{8, 8}}, .filter = Filter::kNearest};
}

Result<PassOutcome> pass_over(Client& client, const FolderPass& pass) {
  MILLRACE_TRY(Session session, client.open_session({.name = pass.session,
                                                     .slots = 3,
                                                     .batch = kBatch,
                                                     .recipe = pass.recipe,
                                                     .slot_bytes = *slot_bytes_for(pass.recipe, kBatch),
                                                     .cache = pass.cache,
                                                     .cache_at_once = pass.cache == CacheUse::kPacked}));
  MILLRACE_TRY(const Dataset dataset,
               open_named(session, pass.dataset, {.extensions = pass.extensions, .unclassified = true}));
  if (pass.extensions.empty() && !pass.dataset.is_list) print_skipped(dataset);
  Epoch epoch = session.epoch(dataset, {.on_error = OnError::kSkip, .backend = "cpu"});  // which alone keeps
  PassOutcome outcome;
  MILLRACE_TRY_VOID(go_through(epoch, dataset.samples(), pass, outcome));
  return outcome;
}

}  // namespace millrace::cli
