#include "daemon/serve/rpc/statistics_service.h"

#include <unistd.h>

#include <boost/asio/post.hpp>
#include <string>
#include <utility>

#include "daemon/serve/rpc/metric_messages.h"
#include "daemon/serve/rpc/unary_call.h"
#include "proto/base/printable.h"

namespace millrace {
namespace {

constexpr std::chrono::milliseconds kBetweenSums{10};
constexpr int kExplainsAPart = 4;  // of the time that an answer took, until the next one

}  // namespace

StatisticsService::StatisticsService(const GrpcServer::Parts& parts, const GrpcServer::Options& options,
                                     StreamSurroundings& around, Explaining& explaining)
    : parts_(parts),
      options_(options),
      explaining_(explaining),
      later_(parts.control),
      why_later_(parts.control),
      recordings_(around, parts.pipeline, parts.ledger, parts.counters) {}

grpc::ServerUnaryReactor* StatisticsService::Get(grpc::CallbackServerContext* call,
                                                 const v1::GetStatisticsRequest* request_untrusted,
                                                 v1::GetStatisticsReply* reply) {
  grpc::ServerUnaryReactor* reactor = call->DefaultReactor();
  if (refuses_unknown(*reactor, *request_untrusted)) return reactor;
  descriptors_.look(parts_.counters);
  boost::asio::post(parts_.control, [this, reactor, reply] { ask({reactor, reply}); });
  return reactor;
}

grpc::ServerUnaryReactor* StatisticsService::Explain(grpc::CallbackServerContext* call,
                                                     const v1::ExplainRequest* request_untrusted,
                                                     v1::ExplainReply* reply) {
  grpc::ServerUnaryReactor* reactor = call->DefaultReactor();
  if (refuses_unknown(*reactor, *request_untrusted)) return reactor;
  boost::asio::post(parts_.control, [this, why = Why{reactor, call, request_untrusted, reply}] { ask_why(why); });
  return reactor;
}

void StatisticsService::ask_why(Why why) {
  why_asked_.push_back(why);
  if (why_asked_.size() == 1) explain_when_due();
}

void StatisticsService::explain_when_due() {
  why_later_.expires_at(why_due_);
  why_later_.async_wait([this](boost::system::error_code cancelled) {
    if (cancelled) return;
    const Clock::time_point begun = Clock::now();
    const Why next = why_asked_.front();
    next.call->Finish(next.context->IsCancelled() ? grpc::Status::CANCELLED
                                                  : explaining_.answer(*next.request_untrusted, *next.reply));
    const Clock::time_point now = Clock::now();
    why_due_ = now + kExplainsAPart * (now - begun);
    why_asked_.pop_front();
    if (!why_asked_.empty()) explain_when_due();
  });
}

grpc::ServerWriteReactor<v1::TracePart>* StatisticsService::Trace(grpc::CallbackServerContext* call,
                                                                  const v1::TraceRequest* request_untrusted) {
  return recordings_.begin(*call, *request_untrusted);
}

void StatisticsService::ask(Asked asked) {
  asked_.push_back(asked);
  if (asked_.size() > 1) return;
  later_.expires_at(last_ + kBetweenSums);
  if (later_.expiry() <= Clock::now()) return answer_all();
  later_.async_wait([this](boost::system::error_code cancelled) {
    if (!cancelled) answer_all();
  });
}

void StatisticsService::answer_all() {
  last_ = Clock::now();
  v1::GetStatisticsReply figures;
  add_up(figures);
  for (const Asked& asked : std::exchange(asked_, {})) {
    *asked.reply = figures;
    asked.call->Finish(grpc::Status::OK);
  }
}

void StatisticsService::add_up(v1::GetStatisticsReply& reply) const {
  reply.set_daemon_version(options_.version);
  reply.set_settings_file(printable(options_.settings_file));
  for (const std::string& root : options_.roots) reply.add_roots(root);
  if (options_.missing_roots)
    for (const std::string& root : options_.missing_roots()) reply.add_missing_roots(root);
  reply.set_indexes_not_kept(printable(options_.indexes_not_kept));
  reply.set_pid(::getpid());
  reply.set_uptime_seconds(std::chrono::duration<double>(Clock::now() - since_).count());
  parts_.counters.set(MetricId::roots, reply.roots_size());
  parts_.counters.set(MetricId::roots_missing, reply.missing_roots_size());
  describe(parts_.counters, reply);
  parts_.sessions.describe(*reply.mutable_sessions());
  parts_.sessions.describe_costs(reply);
}

}  // namespace millrace
