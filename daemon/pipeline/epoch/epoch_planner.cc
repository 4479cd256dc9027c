#include "daemon/pipeline/epoch/epoch_planner.h"

#include <boost/asio/post.hpp>
#include <optional>
#include <utility>

namespace millrace {

void EpochPlanner::plan(Owner owner, const EpochOrderSpec& spec, std::function<void(Planned)> done) {
  add(Job{owner, spec.samples, [this, spec, done = std::move(done)]() -> Answer {
            Planned planned{orders_.of(spec), nullptr};
            if (positions_ == Positions::kWanted && planned.order) planned.positions = known_.of(spec, *planned.order);
            return [planned = std::move(planned), done] { done(planned); };
          }});
}

void EpochPlanner::foresee(Owner owner, const EpochOrderSpec& spec,
                           std::function<void(std::shared_ptr<const EpochPositions>)> done) {
  add(Job{owner, spec.samples, [this, spec, done = std::move(done)]() -> Answer {
            return [positions = known_.of(spec), done] { done(positions); };
          }});
}

void EpochPlanner::forget(Owner owner) {
  jobs_.remove([&](const Job& job) { return job.owner == owner; });
}

void EpochPlanner::add(Job job) {
  const Owner owner = job.owner;
  jobs_.push(owner, Priority::kNormal, std::move(job));
  begin_next();
}

void EpochPlanner::begin_next() {
  if (busy_) return;
  std::optional<Job> job = jobs_.take();
  if (!job) return;
  busy_ = true;
  jobs_.charge(job->owner, Priority::kNormal, job->cost);
  boost::asio::post(thread_, [this, work = std::move(job->work)] {
    boost::asio::post(control_, [this, answer = work()] {
      busy_ = false;
      begin_next();
      answer();
    });
  });
}

}  // namespace millrace
