// Clients that die: in the hand-off, in the middle of a message, with work under way. SIGKILL, so that nothing of
// theirs cleans up.
#include <csignal>
#include <stdexcept>

#include "millrace/client.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/system/client/acts.h"
#include "tests/system/support/need.h"
#include "tests/system/support/raw_session.h"

namespace millrace {
namespace {

[[noreturn]] void wait_for_the_end() {
  std::string line;
  while (next_line(line)) {
  }
  std::_Exit(0);
}

constexpr std::uint32_t kSlots = 4;

v1::OpenSessionRequest open_request(const RawHandoff& handoff) {
  v1::OpenSessionRequest request;
  request.set_ticket(handoff.ticket());
  request.set_slots(kSlots);
  request.set_slot_bytes(1 << 20);
  return request;
}

}  // namespace

int act_handoff(const std::string& socket, Arguments arguments) {
  const std::string& stage = arguments[0];
  RawHandoff handoff(socket);
  if (stage != "connected") handoff.hello();
  if (stage == "opened") {  // the descriptor is on its way to us and stays there
    v1::OpenSessionReply reply;
    const grpc::Status status = raw_open(raw_channel(socket), open_request(handoff), reply);
    if (!status.ok()) throw std::runtime_error(status.error_message());
  }
  say("at " + stage);
  wait_for_the_end();
}

// A socket's buffer holds a fifth of the message, and nobody of this process sends the rest.
int act_die_in_submit(const std::string& socket, Arguments arguments) {
  Client client = need(Client::connect(socket));
  const auto jpeg = read_file(arguments[0]);
  const auto samples = static_cast<std::uint32_t>((1_MiB).count / jpeg.size());
  Session session = need(client.open_session({.slots = kSlots, .batch = samples, .recipe = Recipe::evaluate(32, 32)}));
  BatchRequest request;
  for (std::uint32_t i = 0; i < samples; ++i) request.samples.push_back({.source = Encoded{jpeg}});
  say("submitting");
  need(session.submit(std::move(request)));
  std::raise(SIGKILL);
  return 1;
}

int act_die_with_work(const std::string& socket, Arguments arguments) {
  Client client = need(Client::connect(socket));
  Session session =
      need(client.open_session({.name = "work", .slots = kSlots, .batch = 64, .recipe = Recipe::train(96)}));
  const Dataset dataset = need(session.open_dataset(arguments[0]));
  BatchRequest request{.on_error = OnError::kSkip};
  for (std::uint64_t i = 0; i < 64; ++i)
    request.samples.push_back({.source = DatasetSample{dataset.id(), i % dataset.samples()}});
  for (int batch = 0; batch < 16; ++batch) need(session.submit(request));
  need(session.next());  // so lanes are at work, and more batches wait for a slot
  say("submitted");
  std::string line;
  next_line(line);
  std::raise(SIGKILL);
  return 1;
}

}  // namespace millrace
