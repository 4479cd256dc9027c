#include "daemon/memory/segment_maker.h"

#include <boost/asio/post.hpp>
#include <utility>

namespace millrace {
namespace {

// The same segment, but destroyed on `thread`.
std::shared_ptr<Segment> freed_on(std::shared_ptr<boost::asio::thread_pool> thread, std::shared_ptr<Segment> segment) {
  Segment* const plain = segment.get();
  return {plain, [thread = std::move(thread), segment = std::move(segment)](Segment*) mutable {
            boost::asio::post(*thread, [doomed = std::move(segment)] {});
          }};
}

}  // namespace

void SegmentMaker::make(Bytes size, std::shared_ptr<const StopFlag> unwanted,
                        std::function<void(Result<std::shared_ptr<Segment>>)> done) {
  boost::asio::post(*thread_, [this, size, unwanted = std::move(unwanted), done = std::move(done)]() mutable {
    Result<std::shared_ptr<Segment>> made = Segment::create(size, budget_, *unwanted);
    if (made) made = freed_on(thread_, *std::move(made));
    boost::asio::post(control_, [done = std::move(done), made = std::move(made)]() mutable { done(std::move(made)); });
  });
}

void SegmentMaker::finish() {
  thread_->join();
}

}  // namespace millrace
