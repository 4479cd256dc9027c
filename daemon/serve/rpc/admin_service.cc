#include "daemon/serve/rpc/admin_service.h"

#include <unistd.h>

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <utility>

#include "daemon/model/stopping.h"
#include "daemon/observe/log.h"
#include "daemon/serve/rpc/admin_rights.h"
#include "daemon/serve/sessions/session.h"
#include "proto/base/printable.h"
#include "proto/rpc/known.h"
#include "proto/rpc/status_map.h"

namespace millrace {
namespace {

constexpr std::chrono::milliseconds kTellEvery{100};
constexpr std::size_t kMostComplaints = 100;  // a reply is no place for a whole file of them

// A call of an administrator: `work` gets who he is, on the control thread, and finishes the reactor itself.
template <class Request, class Work>
grpc::ServerUnaryReactor* order(const StreamSurroundings& around, grpc::CallbackServerContext& call,
                                const Request& untrusted, std::string what, Work work) {
  grpc::ServerUnaryReactor* reactor = call.DefaultReactor();
  if (has_unknown_fields(untrusted)) {
    reactor->Finish(to_status(unknown_field(untrusted)));
    return reactor;
  }
  boost::asio::post(around.control, [&around, &call, reactor, ticket = untrusted.ticket(), what = std::move(what),
                                     work = std::move(work)]() mutable {
    const AdmittedAdmin admin = admit_admin(around, ticket, what, call);
    if (!admin.status.ok()) return reactor->Finish(admin.status);
    work(admin.who, *reactor);
  });
  return reactor;
}

template <class Complaints>
void write_complaints(const std::vector<std::string>& complaints, Complaints& to) {
  for (std::size_t i = 0; i < complaints.size() && i < kMostComplaints; ++i) *to.Add() = printable(complaints[i]);
  if (complaints.size() > kMostComplaints)
    *to.Add() = "and " + std::to_string(complaints.size() - kMostComplaints) + " more";
}

template <class Changes>
void write_changes(const std::vector<SettingChange>& changes, Changes& to) {
  for (const SettingChange& change : changes) {
    v1::SettingChange& message = *to.Add();
    message.set_name(change.name);
    message.set_in_force(printable(change.before));
    message.set_in_file(printable(change.now));
  }
}

template <class Uses>
void write_use(Resource resource, std::uint64_t in_use, std::uint64_t bound, Uses& to) {
  const ResourceRow& row = row_of(resource);
  v1::ResourceUse& message = *to.Add();
  message.set_name((row.where.empty() ? "" : std::string(row.where) + ' ') + std::string(row.noun));
  message.set_bytes(row.unit == Unit::kBytes);
  message.set_in_use(in_use);
  message.set_bound(bound == kUnbounded ? 0 : bound);
}

}  // namespace

grpc::ServerUnaryReactor* AdminService::Reload(grpc::CallbackServerContext* call,
                                               const v1::ReloadRequest* request_untrusted, v1::ReloadReply* reply) {
  return order(around_, *call, *request_untrusted, "have its settings read again",
               [this, reply](const std::string& who, grpc::ServerUnaryReactor& reactor) {
                 orders_.reload(who, [this, reply, &reactor](Result<FileReading> read) {
                   if (!read) return reactor.Finish(to_status(read.error()));
                   reply->set_file(printable(about_.settings_file));
                   write_complaints(read->complaints, *reply->mutable_complaints());
                   write_complaints(read->remarks, *reply->mutable_remarks());
                   write_changes(read->changes.live, *reply->mutable_changed());
                   write_changes(read->changes.at_start, *reply->mutable_at_start());
                   reply->set_unchanged(static_cast<std::uint32_t>(read->changes.unchanged));
                   reactor.Finish(grpc::Status::OK);
                 });
               });
}

grpc::ServerUnaryReactor* AdminService::Resume(grpc::CallbackServerContext* call,
                                               const v1::ResumeRequest* request_untrusted, v1::ResumeReply* reply) {
  return order(around_, *call, *request_untrusted, "have it resume",
               [this, reply](const std::string& who, grpc::ServerUnaryReactor& reactor) {
                 reply->set_drained(orders_.resume(who));
                 reactor.Finish(grpc::Status::OK);
               });
}

grpc::ServerUnaryReactor* AdminService::CloseSession(grpc::CallbackServerContext* call,
                                                     const v1::CloseSessionRequest* request_untrusted,
                                                     v1::CloseSessionReply* reply) {
  return order(around_, *call, *request_untrusted, "close others' sessions",
               [this, reply, id = SessionId{request_untrusted->session_id()}](const std::string& by,
                                                                              grpc::ServerUnaryReactor& reactor) {
                 const Result<SessionTable::Closed> closed = around_.sessions.close(id, closed_by_admin());
                 if (!closed) return reactor.Finish(to_status(closed.error()));
                 log_always(by + " has session " + std::to_string(raw(id)) + " closed, of " +
                            who(*closed->caller, closed->name));
                 reply->set_uid(closed->caller->uid);
                 reply->set_pid(closed->caller->pid);
                 reply->set_name(printable(closed->name));
                 reactor.Finish(grpc::Status::OK);
               });
}

grpc::ServerUnaryReactor* AdminService::Status(grpc::CallbackServerContext* call,
                                               const v1::AdminStatusRequest* request_untrusted,
                                               v1::AdminStatusReply* reply) {
  return order(around_, *call, *request_untrusted, "see who holds what",
               [this, reply](const std::string&, grpc::ServerUnaryReactor& reactor) {
                 orders_.compare([this, reply, &reactor](const Result<FileReading>& reading) {
                   describe(reading, *reply);
                   reactor.Finish(grpc::Status::OK);
                 });
               });
}

void AdminService::describe(const Result<FileReading>& reading, v1::AdminStatusReply& reply) const {
  const Draining draining = orders_.draining();
  reply.set_daemon_version(about_.version);
  reply.set_pid(::getpid());
  reply.set_uptime_seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - since_).count());
  reply.set_draining(draining.on);
  reply.set_stops(draining.stops);
  reply.set_batches(draining.batches);
  reply.set_settings_file(printable(about_.settings_file));
  if (reading) {
    write_complaints(reading->complaints, *reply.mutable_complaints());
    write_changes(reading->changes.live, *reply.mutable_reloadable());
    write_changes(reading->changes.at_start, *reply.mutable_at_start());
  } else if (reading.error().code != Code::kPrecondition) {  // which is: there is no file
    write_complaints({reading.error().message}, *reply.mutable_complaints());
  }
  for (std::size_t i = 0; i < kResources; ++i) {
    const auto resource = static_cast<Resource>(i);
    write_use(resource, ledger_.in_use(resource), ledger_.bounds(resource).total, *reply.mutable_in_use());
  }
  for (const Ledger::UserUse& user : ledger_.users()) {
    v1::UserUse& message = *reply.add_users();
    message.set_uid(raw(user.user));
    for (std::size_t i = 0; i < kResources; ++i) {
      const auto resource = static_cast<Resource>(i);
      if (user.in_use[i] > 0)
        write_use(resource, user.in_use[i], ledger_.bounds(resource).user, *message.mutable_holds());
    }
  }
  around_.sessions.describe(*reply.mutable_sessions());
}

// One call of Drain. At most one message is being written. Owned by gRPC until OnDone, then by the posting that deletes
// it.
class AdminService::Telling final : public grpc::ServerWriteReactor<v1::DrainProgress> {
 public:
  Telling(AdminService& service, grpc::CallbackServerContext& call, const v1::DrainRequest& untrusted)
      : service_(service), control_(service.around_.control), timer_(control_) {
    if (has_unknown_fields(untrusted)) {
      Finish(to_status(unknown_field(untrusted)));
      return;
    }
    const ThenStop then = untrusted.stop() ? ThenStop::kYes : ThenStop::kNo;
    boost::asio::post(control_, [this, &call, ticket = untrusted.ticket(), then] { begin(ticket, then, call); });
  }

  // gRPC's threads:
  void OnCancel() override {
    boost::asio::post(control_, [this] { unwanted_ = true; });
  }
  void OnWriteDone(bool ok) override {
    boost::asio::post(control_, [this, ok] { written(ok); });
  }
  void OnDone() override {
    boost::asio::post(control_, [own = std::unique_ptr<Telling>(this)] {});
  }

 private:
  void begin(const std::string& ticket_untrusted, ThenStop then, grpc::CallbackServerContext& call) {
    const AdmittedAdmin admin = admit_admin(service_.around_, ticket_untrusted, "drain it", call);
    if (!admin.status.ok()) return Finish(admin.status);
    service_.orders_.drain(admin.who, then);
    tell();
  }

  void tell() {
    if (unwanted_) return Finish(grpc::Status::CANCELLED);
    const Draining draining = service_.orders_.draining();
    message_.set_batches(draining.batches);
    message_.set_sessions(service_.around_.sessions.sessions());
    message_.set_resumed(!draining.on);
    message_.set_finished(draining.on && (draining.batches == 0 || draining.time_over));
    message_.set_seconds_left(std::chrono::duration<double>(draining.left).count());
    StartWrite(&message_);
  }

  void written(bool ok) {
    if (!ok) return Finish(grpc::Status::CANCELLED);
    if (message_.finished() || message_.resumed()) return Finish(grpc::Status::OK);
    timer_.expires_after(kTellEvery);
    timer_.async_wait(
        [this](boost::system::error_code) { tell(); });  // OnDone comes after Finish(), which tell() calls
  }

  AdminService& service_;
  boost::asio::io_context& control_;
  boost::asio::steady_timer timer_;
  v1::DrainProgress message_;  // gRPC's while it is written
  bool unwanted_ = false;
};

grpc::ServerWriteReactor<v1::DrainProgress>* AdminService::Drain(grpc::CallbackServerContext* call,
                                                                 const v1::DrainRequest* request_untrusted) {
  return new Telling(*this, *call, *request_untrusted);  // owns itself: see there
}

}  // namespace millrace
