#include "daemon/serve/sessions/session.h"

#include <type_traits>
#include <utility>

#include "daemon/observe/explain/waited.h"
#include "daemon/observe/trace/points.h"
#include "daemon/serve/sessions/cost_messages.h"
#include "daemon/serve/sessions/messages.h"
#include "proto/base/printable.h"

namespace millrace {
namespace {

constexpr std::size_t kLongestName = 64, kLongestMessage = 500;  // bytes of the client's in a line of the log
constexpr std::size_t kFoldersNamed = 4, kLongestFolder = 400;   // likewise

std::string shortened(std::string_view text, std::size_t most) {
  return text.size() <= most ? std::string(text) : std::string(text.substr(0, most)) + "...";
}

}  // namespace

std::string who(const Caller& caller, const std::string& name_untrusted) {
  std::string text = "user " + std::to_string(caller.uid) + ", pid " + std::to_string(caller.pid);
  if (!name_untrusted.empty()) text += " (\"" + printable(name_untrusted, kLongestName) + "\")";
  return text;
}

LogLevel level_of(const Error& refusal) {
  const bool of_rights_or_room = refusal.code == Code::kDenied || refusal.code == Code::kExhausted;
  return of_rights_or_room ? LogLevel::kWarning : LogLevel::kDebug;
}

Session::Session(Parts parts, boost::asio::io_context& control, const Services& services, Counters& counters,
                 InForce<Limits> limits)
    : parts_(std::move(parts)),
      job_(parts_.jobs.opens(parts_.caller->uid, parts_.job)),
      costs_(std::make_shared<SessionCosts>(job_)),
      pipeline_(services.pipeline),
      rings_(services.rings),
      counters_(counters),
      limits_(std::move(limits)),
      slots_(parts_.segment, parts_.id, parts_.slots, parts_.slot_bytes, counters),
      publisher_(slots_, *states_),
      control_(control),
      listings_(control, services.lister, parts_.listings, parts_.caller, parts_.account, costs_,
                limits_.now().session.dataset_files),
      datasets_(std::make_shared<DatasetTable>(parts_.account)) {
  name_in_recordings();
  pipeline_.open_session(parts_.id, SessionParts{.slots = &slots_,
                                                 .arena = parts_.arena,
                                                 .sink = &publisher_,
                                                 .caller = parts_.caller,
                                                 .account = parts_.account,
                                                 .cache = parts_.cache,
                                                 .cache_at_once = parts_.cache_at_once,
                                                 .costs = costs_,
                                                 .states = states_,
                                                 .signs = signs_});
  hold(slots_.bytes() + (parts_.memory.empty() ? Bytes{} : parts_.arena->hand_over().bytes));
  counters_.add(MetricId::sessions_opened);
  counters_.add(MetricId::sessions);
}

Session::~Session() {
  parts_.unwanted->stop();
  pipeline_.close_session(parts_.id);
  hold({});
  parts_.jobs.closes(*job_);
  counters_.subtract(MetricId::sessions);
  if (trace::on())
    trace::record({.what = trace::What::kSessionEnds, .of = {parts_.caller->user(), parts_.id}, .at = trace::now()});
}

void Session::name_in_recordings() const {
  if (!trace::on()) return;
  trace::name_session({{parts_.caller->user(), parts_.id}, parts_.name, parts_.job});
}

void Session::hold(Bytes memory) {
  const auto now = SessionCosts::Clock::now();
  costs_->hold(memory, now);
  costs_->let_go(std::exchange(held_, memory), now);
}

Result<void> Session::attach(StreamPort& stream) {
  if (!replies_)
    return Error{Code::kUnavailable, "this session's reply socket could not be handed over; open another session"};
  if (had_stream_) return Error{Code::kPrecondition, "this session has had its stream; open another session"};
  had_stream_ = true;
  stream_ = &stream;
  replies_->on_lost([this](const Error& why) { cut_off(why); });
  publisher_.attach(*replies_);
  requests_ = std::make_shared<RequestReader>(
      replies_,
      RequestReader::Surroundings{control_, parts_.parsing, limits_, datasets_, parts_.account,
                                  pipeline_.control_time(), parts_.caller->user(), costs_},
      static_cast<RequestReader::Port&>(*this));
  requests_->start();
  tell_withdrawn();
  return {};
}

void Session::reply_by(std::shared_ptr<ReplySocket> socket, std::function<void()> sent_descriptor) {
  replies_ = std::move(socket);
  sent_descriptor_ = std::move(sent_descriptor);
}

// The stream's end says why.
void Session::cut_off(const Error& why) {
  StreamPort& stream = *stream_;
  detach(StreamEnd::kBroken);
  stream.finish(why);
}

void Session::grown(SegmentProgress progress) {
  slots_.ready_to(progress.slots);
  if (progress.no_room) {
    const Bytes before = slots_.bytes();
    slots_.withdraw_rest(*progress.no_room);
    hold(held_ - (before - slots_.bytes()));
    parts_.log.say(LogLevel::kWarning, parts_.caller->uid,
                   "session " + std::to_string(raw(parts_.id)) + ", " + who(*parts_.caller, parts_.name) + ": " +
                       std::to_string(slots_.slots_withdrawn()) + " of " + std::to_string(parts_.slots) +
                       " slots withdrawn: " + progress.no_room->message);
    tell_withdrawn();
  }
  pipeline_.slots_changed(parts_.id);
}

// Not before it has its stream: attach() catches up.
void Session::tell_withdrawn() {
  if (stream_ == nullptr || slots_.slots_withdrawn() == 0) return;
  publisher_.send(slots_withdrawn_message(slots_.slots(), slots_.why_withdrawn()));
}

void Session::detach(StreamEnd end) {
  if (stream_ == nullptr) return;
  stream_ = nullptr;
  ended_by_client_ = end == StreamEnd::kByClient;
  stream_ends();
  publisher_.detach();
  listings_.stop();
  datasets_->clear();
  pipeline_.close_session(parts_.id);
}

void Session::stream_ends() {
  if (requests_) requests_->stop();
  if (replies_) replies_->finish();
}

void Session::requested(ClientRequest request, Charge room) {
  if (auto* batch = std::get_if<BatchRequest>(&request)) return act(std::move(*batch), std::move(room));
  std::visit(
      [this](auto&& wanted) {
        if constexpr (!std::is_same_v<std::decay_t<decltype(wanted)>, BatchRequest>) act(std::move(wanted));
      },
      std::move(request));
}

void Session::act(BatchRequest request, Charge room) {
  const BatchId id = request.id;
  const std::shared_ptr<const Recipe> recipe = request.recipe;
  const auto samples = static_cast<std::uint32_t>(request.samples.size());
  request.ring = ring_;
  const Result<void> admitted = pipeline_.submit(parts_.id, std::move(request), std::move(room));
  if (admitted) return;
  const Bytes needed = pipeline_.slot_bytes_for(recipe, samples);
  refuse(id, admitted.error(), needed > parts_.arena->slot_bytes() ? needed : Bytes{});
}

void Session::act(CancelRequest request) {
  pipeline_.cancel(parts_.id, request.batch);
}

void Session::act(ReleaseRequest request) {
  const Result<void> released = pipeline_.release(parts_.id, request.slot_untrusted, request.generation_untrusted);
  if (!released) return refuse({}, released.error().within("release"));
  if (request.waited_ns_untrusted)
    costs_->add({.waited = states_->waited(request.slot_untrusted, *request.waited_ns_untrusted)});
  states_->released(request.slot_untrusted);
}

void Session::act(OpenDatasetRequest request) {
  const DatasetId id = request.id;
  if (const Result<void> reserved = reserve(id, request.path); !reserved) return refuse(id, reserved.error());
  const auto progress = [this, id](std::uint64_t files) { publisher_.send(dataset_progress_message(id, files)); };
  const auto done = [this, id](Result<std::shared_ptr<const Dataset>> dataset) { listed(id, std::move(dataset)); };
  const Result<void> begun = listings_.begin(std::move(request.path), std::move(request.choice), progress, done);
  if (!begun && datasets_->drop(id)) refuse(id, begun.error());
  listings_changed();
}

// The first part begins the list.
void Session::act(ListFilesRequest request) {
  const DatasetId id = request.id;
  if (!request.folder.empty()) {
    if (const Result<void> reserved = reserve(id, request.folder); !reserved) return refuse(id, reserved.error());
    listings_.begin_own(id, std::move(request.folder));
    listings_changed();
  }
  if (!listings_.makes_own(id))
    return refuse(id, Error{Code::kInvalid, "dataset_id: no list " + std::to_string(raw(id)) +
                                                " is being made; its first part names a folder"});
  const Result<std::uint64_t> files = listings_.add(id, std::move(request.part));
  if (files) publisher_.send(dataset_progress_message(id, *files));
  const auto done = [this, id](Result<std::shared_ptr<const Dataset>> dataset) { listed(id, std::move(dataset)); };
  Result<void> taken = files ? Result<void>() : Result<void>(files.error());
  if (taken && request.last) taken = listings_.end_own(id, done);
  if (taken) return;
  if (datasets_->drop(id)) refuse(id, taken.error());
  listings_changed();
}

// For its time by state.
void Session::listings_changed() {
  pipeline_.lists(parts_.id, datasets_->listed_now() > 0);
}

void Session::act(const NameFilesRequest& request) {
  publisher_.send(sample_files_message(request));
}

// A list that its client is sending, if there is one of this id.
void Session::drop_list(DatasetId id) {
  if (!listings_.makes_own(id)) return;
  listings_.drop_own(id);
  static_cast<void>(datasets_->drop(id));  // nobody puts it together any more
  listings_changed();
}

Result<void> Session::reserve(DatasetId id, std::string_view folder_untrusted) {
  ++datasets_opened_;
  if (folders_.size() < kFoldersNamed) folders_.push_back(shortened(folder_untrusted, kLongestFolder));
  return datasets_->reserve(id);
}

void Session::listed(DatasetId id, Result<std::shared_ptr<const Dataset>> dataset) {
  Result<v1::ServerMessage> message =
      dataset ? dataset_opened_message(id, **dataset) : Result<v1::ServerMessage>(dataset.error());
  if (!message) {
    if (datasets_->drop(id)) refuse(id, message.error());
    return listings_changed();
  }
  files_listed_ += (*dataset)->samples();
  if (datasets_->fill(id, *std::move(dataset))) publisher_.send(*std::move(message));
  listings_changed();
}

void Session::act(CloseDatasetRequest request) {
  switch (datasets_->close(request.id)) {
    case DatasetTable::Closed::kUnknown:
      return refuse(request.id, Error{Code::kNotFound, "dataset_id: no dataset " + std::to_string(raw(request.id)) +
                                                           " is open in this session"});
    case DatasetTable::Closed::kWhileListed:
      drop_list(request.id);
      listings_changed();
      return publisher_.send(
          failed_message(request.id, Error{Code::kCancelled, "the dataset was closed before it was listed"}));
    case DatasetTable::Closed::kOpen:
      return;
  }
}

void Session::act(EpochRequest request) {
  pipeline_.start_epoch(parts_.id, std::move(request));
}

void Session::act(GiveBatchesRequest request) {
  pipeline_.give_batches(parts_.id, request.id, std::move(request.batches));
}

void Session::act(StopEpochRequest request) {
  pipeline_.stop_epoch(parts_.id, request.id);
}

void Session::act(RefusedRequest request) {
  if (const auto* id = std::get_if<DatasetId>(&request.subject); id != nullptr) drop_list(*id);
  refuse(request.subject, request.error);
}

void Session::refuse(const Subject& subject, const Error& error, Bytes slot_bytes) {
  ++refused_;
  counters_.add(MetricId::requests_refused, code_name(error.code));
  parts_.log.say(level_of(error), parts_.caller->uid,
                 "session " + std::to_string(raw(parts_.id)) + ", " + who(*parts_.caller, parts_.name) +
                     ": refused: " + printable(error.message, kLongestMessage));
  publisher_.send(failed_message(subject, error, slot_bytes));
}

Result<UniqueFd> Session::make_ring(Bytes size_untrusted) {
  if (ring_) return Error{Code::kPrecondition, "this session has its input ring already"};
  MILLRACE_TRY(NewInputRing made, rings_.make_ring(size_untrusted, limits_.now().session.ring));
  ring_ = std::move(made.ring);
  return std::move(made.clients);
}

KeyValues Session::identity() const {
  KeyValues line;
  line.add("session", raw(parts_.id)).add("uid", parts_.caller->uid).add("gid", parts_.caller->gid);
  line.add("pid", static_cast<std::uint64_t>(parts_.caller->pid)).add("name", shortened(parts_.name, kLongestName));
  return line;
}

std::string Session::opening_account() const {
  KeyValues line = identity();
  line.add("slots", slots_.slots()).add("segment_bytes", slots_.bytes().count);
  if (!parts_.memory.empty())
    line.add("memory", parts_.memory).add("memory_bytes", parts_.arena->hand_over().bytes.count);
  return line.text();
}

void Session::add_costs(KeyValues& line) const {
  using std::chrono::duration_cast, std::chrono::microseconds;
  pipeline_.control_time().settle();
  const Cost cost = costs_->at(SessionCosts::Clock::now());
  line.add("job", parts_.job).add("cpu_seconds", duration_cast<microseconds>(cost.cpu()));
  line.add("lane_cpu_seconds", duration_cast<microseconds>(cost.lane_cpu));
  line.add("fetch_cpu_seconds", duration_cast<microseconds>(cost.fetch_cpu));
  line.add("control_cpu_seconds", duration_cast<microseconds>(cost.control_cpu));
  line.add("process_cpu_seconds", duration_cast<microseconds>(cost.process_cpu));
  line.add("file_bytes", cost.from_files.count).add("kept_bytes", cost.from_kept.count);
  line.add("memory_byte_seconds", static_cast<std::uint64_t>(cost.memory_seconds));
  line.add("saved_lane_seconds", duration_cast<microseconds>(cost.saved_lanes));
  line.add("waited_seconds", duration_cast<microseconds>(cost.waited)).add("waits", states_->waits_told());
}

std::string Session::summary() const {
  using std::chrono::duration_cast, std::chrono::microseconds;
  const PublishedCounts& counts = publisher_.counts();
  KeyValues line = identity();
  line.add("seconds", duration_cast<microseconds>(std::chrono::steady_clock::now() - opened_));
  line.add("batches", counts.batches).add("images", counts.samples).add("bad", counts.bad_samples);
  line.add("refused", refused_).add("tensor_bytes", counts.tensors.count).add("encoded_bytes", costs_->encoded().count);
  line.add("lane_seconds", duration_cast<microseconds>(costs_->lanes()));
  add_costs(line);
  line.add("datasets", datasets_opened_);
  for (const std::string& folder : folders_) line.add("dataset", folder);
  return line.text();
}

void Session::describe(v1::SessionStatistics& statistics) const {
  statistics.set_session_id(raw(parts_.id));
  statistics.set_name(parts_.name);
  statistics.set_uid(parts_.caller->uid);
  statistics.set_pid(parts_.caller->pid);
  statistics.set_slots(slots_.slots());
  statistics.set_slots_free(slots_.free_slots());
  statistics.set_slots_not_ready(slots_.slots_not_ready());
  statistics.set_slots_withdrawn(slots_.slots_withdrawn());
  statistics.set_segment_bytes(slots_.bytes().count);
  const PublishedCounts& counts = publisher_.counts();
  statistics.set_batches(counts.batches);
  statistics.set_samples(counts.samples);
  statistics.set_bad_samples(counts.bad_samples);
  statistics.set_lane_seconds(std::chrono::duration<double>(costs_->lanes()).count());
  statistics.set_job(parts_.job);
  write(costs_->at(SessionCosts::Clock::now()), *statistics.mutable_cost());
  write(costs_->making(), *statistics.mutable_making());
  describe_states(statistics);
}

void Session::describe_states(v1::SessionStatistics& statistics) const {
  using Seconds = std::chrono::duration<double>;
  const auto now = SessionStates::Clock::now();
  const SessionStates::Times times = states_->times(now);
  for (std::size_t i = 0; i < kSessionStates; ++i) {
    v1::StateTime& state = *statistics.add_states();
    state.set_state(std::string(session_state_name(static_cast<SessionState>(i))));
    state.set_seconds(Seconds(times[i]).count());
    state.set_waited_seconds(Seconds(states_->waits()[i]).count());
  }
  statistics.set_seconds(Seconds(states_->age(now)).count());
  statistics.set_waits_told(states_->waits_told());
}

// The first batch, and one that is not there a second after the one before, are presumed to be waited for: nobody has
// told so yet.
SessionLook Session::look(SessionStates::Clock::time_point now) const {
  constexpr std::chrono::seconds kPatience{1};
  const PublishedCounts& counts = publisher_.counts();
  SessionLook look{.at = now,
                   .times = states_->times(now),
                   .waits = states_->waits(),
                   .slot_waits = states_->slot_waits(),
                   .told = states_->told(),
                   .waits_told = states_->waits_told(),
                   .released = states_->released(),
                   .batches = counts.batches,
                   .images = counts.samples,
                   .bytes_read = costs_->encoded().count,
                   .lanes = costs_->lanes(),
                   .decode = signs_->decode,
                   .made = signs_->made,
                   .left = signs_->left};
  const SessionStates::Times since = states_->times_since_hand_over(now);
  for (std::size_t i = 0; i < kSessionStates; ++i) {
    const auto state = static_cast<SessionState>(i);
    if (state == SessionState::kListing)
      look.waits[i] = look.times[i];  // nothing else is under way then
    else if (!is_programs_own(state) && (counts.batches == 0 || now - states_->newest_hand_over() > kPatience))
      look.waits[i] += since[i];
  }
  signs_->reading.pass(now);
  signs_->making.pass(now);
  return look;
}

}  // namespace millrace
