#include "client/cli/web/daemon_link.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <thread>

#include "millrace/v1/statistics.grpc.pb.h"

namespace millrace::cli {
namespace {

using namespace std::chrono_literals;

constexpr auto kStatisticsFresh = 250ms;
constexpr auto kExplanationFresh = 1'000ms;  // the daemon's figures are of whole seconds
constexpr auto kBetweenExplanations = 50ms;
constexpr auto kPatience = 3s;

}  // namespace

// A call under way, of the io_context's thread alone: with the last channel gRPC ends and joins its threads for callbacks,
// so that one of these that let it go would wait for itself, and go on with what is freed.
struct DaemonLink::Beginning {
  std::shared_ptr<DaemonChannel> channel;
  grpc::ClientContext context;
};
template <class Message>
struct DaemonLink::Call : Beginning {
  std::unique_ptr<v1::Statistics::Stub> stub;
  v1::ExplainRequest request;
  std::shared_ptr<Message> reply = std::make_shared<Message>();
};

DaemonLink::DaemonLink(boost::asio::io_context& context, Address address)
    : context_(context), address_(std::move(address)), next_explanation_(context) {}

// A thread of gRPC may still be about to leave its last call.
DaemonLink::~DaemonLink() {
  for (const std::weak_ptr<const int>& one : callbacks_)
    while (!one.expired()) std::this_thread::sleep_for(1ms);
}

std::shared_ptr<DaemonChannel> DaemonLink::channel() {
  if (!channel_) channel_ = std::make_shared<DaemonChannel>(address_);
  return channel_;
}

void DaemonLink::stop() {
  stopped_ = true;
  next_explanation_.cancel();
  while (!to_explain_.empty()) end_turn(Error{Code::kCancelled, "this server is stopping"}, false);
  for (const auto& call : under_way_) call->context.TryCancel();
}

// Whether `then` has its answer, or waits with others for one that is under way.
template <class Message>
bool DaemonLink::joined(Shared<Message>& shared, std::chrono::milliseconds fresh_for, Then<Message>& then) const {
  const bool fresh = shared.last && std::chrono::steady_clock::now() - shared.at < fresh_for;
  if (fresh || stopped_) {
    then(fresh ? *shared.last : Error{Code::kCancelled, "this server is stopping"});
    return true;
  }
  shared.waiting.push_back(std::move(then));
  return shared.waiting.size() > 1;
}

// `start`: begins the call. What it came to is told on the io_context.
template <class Message, class Start>
void DaemonLink::ask(Start start, Then<Message> then) {
  ++asks_;
  auto call = std::make_shared<Call<Message>>();
  call->channel = channel();
  call->stub = v1::Statistics::NewStub(call->channel->grpc());
  call->context.set_deadline(std::chrono::system_clock::now() + kPatience);
  const auto place = under_way_.insert(under_way_.end(), call);
  const auto callback = std::make_shared<const int>(0);  // goes after all else that the callback has
  std::erase_if(callbacks_, [](const auto& one) { return one.expired(); });
  callbacks_.push_back(callback);
  auto work = boost::asio::make_work_guard(context_);
  start(*call, [this, callback, place, raw = call.get(), work = std::move(work),
                then = std::move(then)](const grpc::Status& status) {
    // Finding words for a failure may take a moment, which the io_context has not.
    Outcome<Message> outcome = std::shared_ptr<const Message>(raw->reply);
    if (!status.ok() && status.error_code() == grpc::StatusCode::UNIMPLEMENTED)
      outcome = Error{Code::kUnsupported, "the daemon at " + address_.target() +
                                              " is older than this program: it cannot say why sessions wait"};
    else if (!status.ok())
      outcome = raw->channel->explain(status, raw->context);
    boost::asio::post(context_, [this, place, then, outcome = std::move(outcome)] {
      if (!outcome && outcome.error().code == Code::kUnavailable && channel_ == (*place)->channel) channel_ = nullptr;
      under_way_.erase(place);
      then(outcome);
    });
  });
}

void DaemonLink::statistics(Then<v1::GetStatisticsReply> then) {
  if (joined(statistics_, kStatisticsFresh, then)) return;
  static const v1::GetStatisticsRequest kRequest;
  ask<v1::GetStatisticsReply>(
      [](Call<v1::GetStatisticsReply>& call, std::function<void(grpc::Status)> done) {
        call.stub->async()->Get(&call.context, &kRequest, call.reply.get(), std::move(done));
      },
      [this](const Outcome<v1::GetStatisticsReply>& outcome) {
        statistics_.last = outcome;
        statistics_.at = std::chrono::steady_clock::now();
        for (const auto& waits : std::exchange(statistics_.waiting, {})) waits(outcome);
      });
}

void DaemonLink::explain(std::uint64_t session, bool history, Then<v1::ExplainReply> then) {
  forget_old();
  const Explained which{session, history};
  if (joined(explained_[which], kExplanationFresh, then)) return;
  to_explain_.push_back({which, std::chrono::steady_clock::now() + kPatience});
  if (to_explain_.size() == 1) explain_next();
}

// One at a time, with a moment between: a program that asks for session after session keeps the daemon no busier.
void DaemonLink::explain_next() {
  if (to_explain_.empty()) return;
  next_explanation_.expires_at(std::max(next_explanation_.expiry(), std::chrono::steady_clock::now()));
  next_explanation_.async_wait([this](boost::system::error_code) {
    if (stopped_) return;
    const Turn turn = to_explain_.front();
    if (std::chrono::steady_clock::now() >= turn.until) {  // those who asked may have gone: the later ones still wait
      end_turn(Error{Code::kDeadline, "more reasons are asked for than the daemon tells: ask again"}, false);
      return explain_next();
    }
    next_explanation_.expires_after(kBetweenExplanations);
    ask<v1::ExplainReply>(
        [&turn](Call<v1::ExplainReply>& call, std::function<void(grpc::Status)> done) {
          call.request.set_session_id(turn.which.first);
          call.request.set_history(turn.which.second);
          call.stub->async()->Explain(&call.context, &call.request, call.reply.get(), std::move(done));
        },
        [this](const Outcome<v1::ExplainReply>& outcome) {
          if (stopped_) return;
          end_turn(outcome, true);
          const bool silent =
              !outcome && (outcome.error().code == Code::kUnavailable || outcome.error().code == Code::kDeadline);
          while (silent && !to_explain_.empty()) end_turn(outcome, true);  // the daemon has nothing for these either
          explain_next();
        });
  });
}

// Of the first one in the queue. `kept`: the outcome is also for those who ask in the next moment.
void DaemonLink::end_turn(const Outcome<v1::ExplainReply>& outcome, bool kept) {
  Shared<v1::ExplainReply>& shared = explained_[to_explain_.front().which];
  to_explain_.pop_front();
  shared.last = kept ? std::optional(outcome) : std::nullopt;
  shared.at = std::chrono::steady_clock::now();
  for (const auto& waits : std::exchange(shared.waiting, {})) waits(outcome);
}

void DaemonLink::forget_old() {
  const auto now = std::chrono::steady_clock::now();
  std::erase_if(explained_, [&](const auto& one) {
    return one.second.waiting.empty() && now - one.second.at >= kExplanationFresh;
  });
}

}  // namespace millrace::cli
