#include "millrace/client.h"

#include "client/src/session_core.h"
#include "client/src/wire/address.h"
#include "client/src/wire/daemon_channel.h"
#include "client/src/wire/handoff_connection.h"

namespace millrace {
inline namespace client {

struct Client::State {
  DaemonChannel channel;
};

std::string library_version() {
  return MILLRACE_VERSION;
}

Client::Client(std::unique_ptr<State> state) : state_(std::move(state)) {}
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;
Client::~Client() = default;

Result<Client> Client::connect(std::string address, std::chrono::milliseconds timeout) {
  const Deadline deadline = deadline_after(timeout);
  MILLRACE_TRY(Address resolved, resolve_address(address));
  MILLRACE_TRY_VOID(probe(resolved, deadline));
  auto state = std::make_unique<State>(State{DaemonChannel(std::move(resolved))});
  MILLRACE_TRY_VOID(state->channel.wait_connected(deadline));
  return Client(std::move(state));
}

Result<Session> Client::open_session(const SessionOptions& options) {
  MILLRACE_TRY(std::shared_ptr<SessionCore> core, SessionCore::open(state_->channel.address(), options));
  return Session(std::move(core));
}

Result<std::chrono::nanoseconds> Client::ping(std::chrono::milliseconds timeout) {
  return state_->channel.check_health(deadline_after(timeout));
}

Result<Statistics> Client::statistics(std::chrono::milliseconds timeout) {
  return state_->channel.statistics(deadline_after(timeout));
}

Result<std::vector<Device>> Client::devices(std::chrono::milliseconds timeout) {
  return state_->channel.devices(deadline_after(timeout));
}

Result<std::vector<SessionFindings>> Client::explain(std::uint64_t session, bool history,
                                                     std::chrono::milliseconds timeout) {
  const Deadline deadline = deadline_after(timeout);
  MILLRACE_TRY(HandoffConnection handoff, HandoffConnection::open(state_->channel.address(), deadline));
  return state_->channel.explain(handoff.ticket(), session, history, deadline);
}

Result<DroppedCache> Client::drop_cache(const DropCache& what, std::chrono::milliseconds timeout) {
  const Deadline deadline = deadline_after(timeout);
  MILLRACE_TRY(const HandoffConnection handoff, HandoffConnection::open(state_->channel.address(), deadline));
  return state_->channel.drop_cache(handoff.ticket(), what, deadline);
}

Result<VerifiedCache> Client::verify_cache(const std::function<bool(const VerifiedCache& so_far)>& goes_on,
                                           std::chrono::milliseconds silence) {
  MILLRACE_TRY(const HandoffConnection handoff,
               HandoffConnection::open(state_->channel.address(), deadline_after(silence)));
  return state_->channel.verify_cache(handoff.ticket(), goes_on, silence);
}

const std::string& Client::socket() const noexcept {
  return state_->channel.address().path;
}

}  // namespace client
}  // namespace millrace
