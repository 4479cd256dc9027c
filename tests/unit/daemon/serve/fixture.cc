#include "tests/unit/daemon/serve/fixture.h"

#include <grpcpp/grpcpp.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <catch2/catch.hpp>
#include <cstring>
#include <future>

#include "daemon/backend/backend.h"
#include "daemon/model/stopping.h"
#include "proto/base/sockets/handoff_path.h"
#include "proto/base/sockets/socket_message.h"
#include "proto/rpc/slots_later_metadata.h"
#include "proto/rpc/ticket_metadata.h"
#include "proto/rpc/unix_address.h"
#include "proto/shm/segment_layout.h"

namespace millrace {
namespace {

constexpr auto kPatience = std::chrono::seconds(20);

Fetched fetched(const FetchItem& item) {
  if (source_name(*item.source).find("bad") != std::string::npos)
    return Fetched{item.index, Error{Code::kInvalid, "truncated"}};
  return Fetched{item.index, EncodedImage{EncodedBytes(100), SourceInfo{ImageFormat::kJpeg, Size{8, 8}, 1}}};
}

void answer(FetchTask task) {
  std::vector<Fetched> items;
  for (const FetchItem& item : task.items) items.push_back(fetched(item));
  task.done(std::move(items));
}

void answer(ListTask task) {
  if (task.path_untrusted.find("bad") != std::string::npos)
    return task.done(Error{Code::kNotFound, "the dataset is empty"});
  task.progress(5);
  std::vector<Dataset::Entry> entries;
  for (std::uint64_t i = 0; i < 5; ++i) entries.push_back({0, 5, static_cast<std::int32_t>(i % 2)});
  task.done(std::make_shared<const Dataset>(task.path_untrusted, "a.jpg", std::move(entries),
                                            std::vector<std::string>{"cat", "d\xffg"}, 42));
}

// One lane, at once: every byte of an image is its id's last byte... the position in the batch.
class StandInBackend final : public Backend {
 public:
  BackendInfo info() const override {
    return {.name = "cpu", .device = "stand-in", .detail = "none", .lanes = 1, .formats = {ImageFormat::kJpeg}};
  }
  QueueDepth queue_depth() const override { return {.jobs = 4, .few = 4, .most = 16}; }
  Result<void> can_make(const SampleFacts&, const Recipe&) const override { return {}; }
  void listen(HealthListener) override {}
  bool try_submit(DecodeJob&& job) override {
    std::vector<SampleOutcome> outcomes;
    for (const SampleTask& task : job.tasks) {
      std::memset(task.out.host, static_cast<int>(task.index), task.out.bytes.count);
      outcomes.push_back(SampleOutcome{.index = task.index});
    }
    job.done(std::move(job.tasks), std::move(outcomes));
    return true;
  }
  void shutdown() override {}
};

}  // namespace

bool StandInFetcher::try_fetch(FetchTask&& task) {
  {
    MutexLock lock(mutex_);
    if (held_) {
      fetches_.push_back(std::move(task));
      return true;
    }
  }
  answer(std::move(task));
  return true;
}

bool StandInFetcher::try_list(ListTask&& task) {
  {
    MutexLock lock(mutex_);
    if (held_) {
      listings_.push_back(std::move(task));
      return true;
    }
  }
  answer(std::move(task));
  return true;
}

void StandInFetcher::hold() {
  MutexLock lock(mutex_);
  held_ = true;
}

void StandInFetcher::let_go() {
  std::vector<FetchTask> fetches;
  std::vector<ListTask> listings;
  {
    MutexLock lock(mutex_);
    held_ = false;
    fetches.swap(fetches_);
    listings.swap(listings_);
  }
  for (FetchTask& task : fetches) answer(std::move(task));
  for (ListTask& task : listings) answer(std::move(task));
}

bool StandInFetcher::holds_stopped_work() {
  MutexLock lock(mutex_);
  return !fetches_.empty() && std::ranges::all_of(fetches_, [](const FetchTask& task) { return task.stop->stopped(); });
}

Front::Front(FrontSetup setup)
    : socket_(folder_.path() + "/millrace.sock"),
      ledger_(budgets_of(setup.limits.session, {.segments = setup.segments})) {
  std::vector<NamedBackend> backends;
  backends.push_back({"cpu", std::make_unique<StandInBackend>(), false});
  maker_ = std::make_unique<SegmentMaker>(control_, promised_);
  copier_ = std::make_unique<Copier>(control_);
  pipeline_ = std::make_unique<Pipeline>(control_, fetcher_, std::move(backends), ledger_, counters_,
                                         Pipeline::Options{.limits = setup.limits});
  sessions_ = *SessionTable::create(control_, ledger_, Session::Services{*pipeline_, fetcher_, fetcher_}, *maker_,
                                    *copier_, counters_, setup.limits,
                                    {.path = handoff_path(socket_), .session_within = setup.session_within});
  grpc_ = std::make_unique<GrpcServer>(GrpcServer::Options{.socket = socket_,
                                                           .version = "1.2.3",
                                                           .admins = *Admins::find({}, {.owner = setup.cache_owner}),
                                                           .limits = setup.limits,
                                                           .attach_within = setup.attach_within},
                                       GrpcServer::Parts{.control = control_,
                                                         .sessions = *sessions_,
                                                         .pipeline = *pipeline_,
                                                         .counters = counters_,
                                                         .ledger = ledger_,
                                                         .cache = setup.cache});
  if (const Result<void> listens = grpc_->listen(); !listens) FAIL(listens.error().message);
  thread_ = std::thread([this] { control_.run(); });
}

Front::~Front() {
  fetcher_.let_go();
  shut_down(std::chrono::seconds(5));
  work_.reset();
  control_.stop();
  thread_.join();
}

void Front::refuse_opening() {
  boost::asio::post(control_, [this] { sessions_->refuse_opening(stopping()); });
}

void Front::shut_down(std::chrono::milliseconds patience) {
  if (std::exchange(shut_down_, true)) return;
  std::promise<void> done;
  boost::asio::post(control_,
                    [&] { grpc_->shutdown(std::chrono::system_clock::now() + patience, [&] { done.set_value(); }); });
  if (done.get_future().wait_for(kPatience) != std::future_status::ready) {
    std::fprintf(stderr, "the gRPC server does not shut down\n");
    std::abort();
  }
}

RawClient::RawClient(const std::string& socket)
    : channel_(grpc::CreateChannel(unix_address(socket), grpc::InsecureChannelCredentials())) {
  sessions_ = v1::Sessions::NewStub(channel_);
  statistics_ = v1::Statistics::NewStub(channel_);
  handoff_.reset(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = handoff_path(socket);
  std::memcpy(address.sun_path, path.c_str(), path.size());
  REQUIRE(::connect(handoff_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  const timeval patience{20, 0};
  ::setsockopt(handoff_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  const shm::HandoffRequest hello{shm::kHandoffMagic, shm::kHandoffVersion,
                                  static_cast<std::uint32_t>(shm::RequestKind::kHello), shm::kWantsReplySocket, 0};
  REQUIRE(::send(handoff_.get(), &hello, sizeof hello, MSG_NOSIGNAL) == sizeof hello);
  const shm::HandoffReply welcome = receive(nullptr);
  REQUIRE(welcome.kind == static_cast<std::uint32_t>(shm::ReplyKind::kWelcome));
  ticket_.assign(reinterpret_cast<const char*>(welcome.ticket), sizeof welcome.ticket);
}

shm::HandoffReply RawClient::receive(std::vector<UniqueFd>* descriptors) {
  shm::HandoffReply reply{};
  ReceivedMessage message = receive_message(handoff_.get(), std::as_writable_bytes(std::span(&reply, 1)), 2);
  REQUIRE(message.bytes == sizeof reply);
  if (descriptors != nullptr) {
    for (UniqueFd& descriptor : message.descriptors) descriptors->push_back(std::move(descriptor));
  }
  return reply;
}

RawRing RawClient::ask_for_ring(std::uint64_t size) {
  const shm::HandoffRequest request{shm::kHandoffMagic, shm::kHandoffVersion,
                                    static_cast<std::uint32_t>(shm::RequestKind::kRingRequest), 0, size};
  REQUIRE(::send(handoff_.get(), &request, sizeof request, MSG_NOSIGNAL) == sizeof request);
  std::vector<UniqueFd> descriptors;
  RawRing ring{receive(&descriptors), {}};
  if (!descriptors.empty()) ring.descriptor = std::move(descriptors.front());
  return ring;
}

v1::OpenSessionRequest RawClient::open_request(std::uint32_t slots) const {
  v1::OpenSessionRequest request;
  request.set_ticket(ticket_);
  request.set_name("test");
  request.set_slots(slots);
  request.set_slot_bytes(65'536);
  return request;
}

grpc::Status RawClient::open(const v1::OpenSessionRequest& request) {
  grpc::ClientContext call;
  return open(request, call);
}

grpc::Status RawClient::open_with_slots_later(const v1::OpenSessionRequest& request) {
  grpc::ClientContext call;
  call.AddMetadata(kSlotsLaterMetadata, "1");
  return open(request, call);
}

grpc::Status RawClient::open(const v1::OpenSessionRequest& request, grpc::ClientContext& call) {
  call.set_deadline(std::chrono::system_clock::now() + kPatience);
  v1::OpenSessionReply reply;
  const grpc::Status status = sessions_->Open(&call, request, &reply);
  if (!status.ok()) return status;
  std::vector<UniqueFd> descriptors;
  const shm::HandoffReply segment = receive(&descriptors);
  REQUIRE(descriptors.size() == 2);
  segment_ = std::move(descriptors[0]);
  replies_ = std::move(descriptors[1]);
  REQUIRE(segment.kind == static_cast<std::uint32_t>(shm::ReplyKind::kSegment));
  REQUIRE(segment.segment_bytes == reply.segment_bytes());
  return status;
}

void RawClient::open_or_fail(std::uint32_t slots) {
  const grpc::Status status = open(open_request(slots));
  INFO(status.error_message());
  REQUIRE(status.ok());
}

bool RawClient::send(const v1::ClientMessage& message) {
  return attached_ ? send_request(replies_.get(), message) : send_by_stream(message);
}

void RawClient::start_stream() {
  attached_ = false;
  call_ = std::make_unique<grpc::ClientContext>();
  call_->set_deadline(std::chrono::system_clock::now() + kPatience);
  stream_ = sessions_->Stream(call_.get());
}

void RawClient::start_stream_with_ticket() {
  call_ = std::make_unique<grpc::ClientContext>();
  call_->set_deadline(std::chrono::system_clock::now() + kPatience);
  call_->AddMetadata(kTicketMetadata, ticket_);
  stream_ = sessions_->Stream(call_.get());
}

void RawClient::attach() {
  start_stream();
  send_attach();
}

void RawClient::send_attach() {
  REQUIRE(send(attach_message(ticket_)));
  v1::ServerMessage answer;
  REQUIRE(stream_->Read(&answer));
  REQUIRE(answer.has_attached());
  attached_ = true;
}

std::optional<v1::ServerMessage> RawClient::read() {
  return read_reply(replies_.get());
}

grpc::Status RawClient::finish() {
  v1::ServerMessage unexpected;
  CHECK_FALSE(stream_->Read(&unexpected));  // beside Attached the stream brings its end alone
  return stream_->Finish();
}

v1::GetStatisticsReply RawClient::statistics() {
  grpc::ClientContext call;
  call.set_deadline(std::chrono::system_clock::now() + kPatience);
  v1::GetStatisticsReply reply;
  REQUIRE(statistics_->Get(&call, v1::GetStatisticsRequest(), &reply).ok());
  return reply;
}

v1::ClientMessage attach_message(const std::string& ticket) {
  v1::ClientMessage message;
  message.mutable_attach()->set_ticket(ticket);
  return message;
}

v1::ClientMessage submit_message(std::uint64_t batch, const std::vector<std::string>& paths) {
  v1::ClientMessage message;
  v1::Submit& submit = *message.mutable_submit();
  submit.set_batch_id(batch);
  for (const std::string& path : paths) submit.add_samples()->set_path(path);
  submit.mutable_recipe()->mutable_resize()->mutable_exact()->set_width(8);
  submit.mutable_recipe()->mutable_resize()->mutable_exact()->set_height(8);
  return message;
}

v1::ClientMessage release_message(const v1::TensorHandle& handle) {
  v1::ClientMessage message;
  message.mutable_release()->set_slot(handle.slot());
  message.mutable_release()->set_generation(handle.generation());
  return message;
}

}  // namespace millrace
