// Resamples pictures for pillow_resample.py, which compares them with Pillow's. Reads jobs from standard input until it
// ends and writes each result to standard output, nothing around it. A job is twelve 32-bit integers (in the order of
// memory) and the picture's bytes, row by row:
//   target (as enum Target), channels, source width, height, target width, height, window left, top, width, height,
//   filter, pass order.
// Exit status 1 for a job that makes no sense or a target that this processor lacks.
#include <array>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <map>
#include <memory>
#include <vector>

#include "kernels/cpu/resample.h"
#include "kernels/cpu/workspace.h"

namespace {

using namespace millrace::kernels;

struct Job {
  Target target;
  ResampleSpec spec;
};

using Header = std::array<std::int32_t, 12>;

Job parse(const Header& h) {
  return {static_cast<Target>(h[0]),
          {h[1],
           {h[2], h[3]},
           {h[4], h[5]},
           {h[6], h[7], h[8], h[9]},
           static_cast<Filter>(h[10]),
           static_cast<PassOrder>(h[11])}};
}

bool can_run(const Header& header) {
  const bool enums = header[0] >= 0 && header[0] < std::ssize(kAllTargets) && header[10] >= 0 && header[10] <= 5 &&
                     header[11] >= 0 && header[11] <= 1;
  return enums && is_available(parse(header).target) && is_valid(parse(header).spec);
}

bool run(const Job& job, Workspace& workspace) {
  const ResampleSpec& spec = job.spec;
  const std::ptrdiff_t in_stride = std::ptrdiff_t{spec.source.width} * spec.channels;
  const std::ptrdiff_t out_stride = std::ptrdiff_t{spec.window.width} * spec.channels;
  std::vector<std::uint8_t> in(static_cast<std::size_t>(in_stride) * spec.source.height);
  std::vector<std::uint8_t> out(static_cast<std::size_t>(out_stride) * spec.window.height);
  if (std::fread(in.data(), 1, in.size(), stdin) != in.size()) return false;
  resample_image(workspace.plan(spec), {in.data(), spec.source.width, spec.source.height, spec.channels, in_stride},
                 workspace, {out.data(), spec.window.width, spec.window.height, spec.channels, out_stride});
  return std::fwrite(out.data(), 1, out.size(), stdout) == out.size() && std::fflush(stdout) == 0;
}

}  // namespace

int main() {
  std::map<Target, std::unique_ptr<Workspace>> workspaces;
  Header header;
  while (std::fread(header.data(), sizeof header, 1, stdin) == 1) {
    if (!can_run(header)) return 1;
    const Job job = parse(header);
    std::unique_ptr<Workspace>& workspace = workspaces[job.target];
    if (!workspace) workspace = std::make_unique<Workspace>(job.target);
    if (!run(job, *workspace)) return 1;
  }
  return 0;
}
