#include "tests/unit/kernels/cuda/thread_block.h"

#include <random>
#include <stdexcept>
#include <string_view>
#include <thread>

namespace millrace {

bool KernelPlace::operator==(const KernelPlace& other) const {
  if (file == nullptr || other.file == nullptr) return file == other.file;
  return line == other.line && std::string_view(file) == other.file;
}

std::string KernelPlace::text() const {
  return file == nullptr ? "the kernel's end" : std::string(file) + ":" + std::to_string(line);
}

ThreadTeam::ThreadTeam(int threads, std::uint32_t seed)
    : shared_(std::make_unique<SharedMemory>()), values_(static_cast<std::size_t>(threads)), seed_(seed) {}

void ThreadTeam::meet(const KernelPlace& place) {
  std::unique_lock lock(mutex_);
  if (!failure_.empty()) throw Broken{};
  if (here_ == 0) place_ = place;
  if (place_ != place) {
    const std::string reason = "threads part ways: one is at " + place_.text() + ", another at " + place.text();
    lock.unlock();
    fail(reason);
  }
  if (++here_ == threads()) {
    here_ = 0;
    ++meetings_;
    lock.unlock();
    changed_.notify_all();
    return;
  }
  changed_.wait(lock, [this, before = meetings_] { return meetings_ != before || !failure_.empty(); });
  if (!failure_.empty()) throw Broken{};
}

void ThreadTeam::fail(const std::string& reason) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) failure_ = reason;
  }
  changed_.notify_all();
  throw Broken{};
}

void ThreadTeam::scramble() {
  std::minstd_rand random(++seed_);
  const auto pattern = static_cast<std::uint32_t>(random());
  std::memset(shared_->bytes, static_cast<int>(pattern & 0xff), kSharedBytes);
}

void* ThreadTeam::shared(std::size_t size) {
  if (size > kSharedBytes) fail("more shared memory than a block has here");
  return shared_->bytes;
}

std::vector<std::int64_t> ThreadBlock::gather(std::int64_t own, const KernelPlace& place) {
  team_.value(thread_) = own;
  team_.meet(place);
  std::vector<std::int64_t> all;
  for (int i = 0; i < threads(); ++i) all.push_back(team_.value(i));
  team_.meet(place);
  return all;
}

void run_on_threads(const ThreadGrid& grid, const std::function<void(ThreadBlock&)>& kernel) {
  std::vector<int> order(static_cast<std::size_t>(grid.blocks));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::shuffle(order, std::minstd_rand(grid.seed + 1));
  std::vector<std::unique_ptr<ThreadTeam>> teams;
  std::vector<std::thread> running;
  const auto count = static_cast<std::size_t>(std::min(grid.side_by_side, grid.blocks));
  for (std::size_t first = 0; first < count; ++first) {
    ThreadTeam& team =
        *teams.emplace_back(std::make_unique<ThreadTeam>(grid.threads, grid.seed + static_cast<unsigned>(first)));
    for (int thread = 0; thread < grid.threads; ++thread) {
      running.emplace_back([&, first, thread] {
        try {
          for (std::size_t i = first; i < order.size(); i += count) {
            if (thread == 0) team.scramble();
            team.meet({});
            ThreadBlock block(team, order[i], thread);
            kernel(block);
            team.meet({});
          }
        } catch (const ThreadTeam::Broken&) {  // failure() says why
        }
      });
    }
  }
  for (std::thread& thread : running) thread.join();
  for (const auto& team : teams) {
    if (!team->failure().empty()) throw std::runtime_error(team->failure());
  }
}

}  // namespace millrace
