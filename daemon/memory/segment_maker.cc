#include "daemon/memory/segment_maker.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

namespace millrace {
namespace {

constexpr Bytes kPortion = 8_MiB;    // a multiple of a huge page; what others wait for at most, so some milliseconds
constexpr Bytes kAtOnce = 32_MiB;    // and the head, before a segment is handed out; some 30 ms
constexpr std::uint32_t kFirst = 2;  // slots that are urgent: one is read while the next one is written

// The same segment, but destroyed on `thread`, beside the thread that lets go of it.
std::shared_ptr<Segment> freed_on(std::shared_ptr<boost::asio::thread_pool> thread, std::shared_ptr<Segment> segment) {
  Segment* const plain = segment.get();
  return {plain, [thread = std::move(thread), segment = std::move(segment)](Segment*) mutable {
            segment->let_go();
            boost::asio::post(*thread, [doomed = std::move(segment)] {});
          }};
}

Bytes first_bytes(const SegmentOrder& order) {
  const Bytes first = order.head + order.stride * std::min(order.slots, kFirst);
  return std::min(order.size, std::max(first, kAtOnce));
}

Bytes bytes_to_hand_out(const SegmentOrder& order) {
  return order.whole ? order.size : std::min(order.size, std::max(order.head, kAtOnce));
}

std::uint32_t filled_slots(const SegmentOrder& order, Bytes filled) {
  if (filled < order.head) return 0;
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(order.slots, (filled - order.head).count / order.stride.count));
}

}  // namespace

void SegmentMaker::make(const SegmentOrder& order, Charge charge, std::shared_ptr<const StopFlag> unwanted,
                        Answers answers) {
  MILLRACE_CHECK(charge.amount() == order.size.count);
  boost::asio::post(filling_, [this, filling = Filling{.order = order,
                                                       .charge = std::move(charge),
                                                       .unwanted = std::move(unwanted),
                                                       .answers = std::move(answers),
                                                       .segment = nullptr}]() mutable { begin(std::move(filling)); });
}

void SegmentMaker::finish() {
  stopping_.stop();
  filling_.join();
  freeing_->join();
}

void SegmentMaker::begin(Filling filling) {
  if (!filling.unwanted->stopped() && !stopping_.stopped()) {
    Result<std::shared_ptr<Segment>> made = Segment::reserve(std::move(filling.charge), promised_);
    if (!made) return end(filling, std::move(made).error());
    filling.segment = freed_on(freeing_, *std::move(made));
  }
  queue(std::move(filling));
}

// One handler for each that is queued: the thread looks at what was posted between any two portions.
void SegmentMaker::queue(Filling filling) {
  using Urgency = PortionTurns<Filling>::Urgency;
  const bool gone = filling.segment == nullptr || filling.unwanted->stopped();
  const bool urgent = gone || filling.segment->filled() < first_bytes(filling.order);
  const std::uint32_t user = filling.order.user;
  turns_.add(urgent ? Urgency::kUrgent : Urgency::kRest, user, std::move(filling));
  boost::asio::post(filling_, [this] { fill_next(); });
}

void SegmentMaker::fill_next() {
  std::optional<Filling> filling = turns_.next();
  if (!filling) return;
  if (filling->segment == nullptr || filling->unwanted->stopped() || stopping_.stopped())
    return end(*filling, Error{Code::kCancelled, "nobody waits for this shared memory any more"});
  fill_portion(*std::move(filling));
}

void SegmentMaker::fill_portion(Filling filling) {
  Segment& segment = *filling.segment;
  const Bytes portion = align_up(segment.filled() + 1_B, kPortion.count);
  if (Result<void> filled = segment.fill_to(std::min(portion, segment.size())); !filled)
    return end(filling, std::move(filled).error());
  tell(filling);
  if (segment.filled() < segment.size()) queue(std::move(filling));
}

void SegmentMaker::tell(Filling& filling) {
  const Bytes filled = filling.segment->filled();
  const std::uint32_t before = std::exchange(filling.slots, filled_slots(filling.order, filled));
  if (filling.handed_out) {
    if (filling.slots == before) return;
    return boost::asio::post(control_, [grown = filling.answers.grown, slots = filling.slots] {
      grown({.slots = slots, .no_room = std::nullopt});
    });
  }
  if (filled < bytes_to_hand_out(filling.order)) return;
  filling.handed_out = true;
  boost::asio::post(control_, [made = std::exchange(filling.answers.made, nullptr),
                               segment = filling.segment]() mutable { made(std::move(segment)); });
}

void SegmentMaker::end(Filling& filling, Error why) {
  filling.charge.refund();  // before anybody hears of it
  if (!filling.handed_out)
    return boost::asio::post(
        control_, [made = std::move(filling.answers.made), why = std::move(why)]() mutable { made(std::move(why)); });
  if (why.code == Code::kCancelled) return;  // a client that went away hears nothing
  const SegmentOrder& order = filling.order;
  filling.segment->give_up_rest(order.head + order.stride * filling.slots);
  boost::asio::post(control_, [grown = std::move(filling.answers.grown), slots = filling.slots,
                               why = std::move(why)]() mutable { grown({.slots = slots, .no_room = std::move(why)}); });
}

}  // namespace millrace
