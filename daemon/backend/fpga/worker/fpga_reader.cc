#include "daemon/backend/fpga/worker/fpga_reader.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace millrace::fpga {
namespace {

constexpr std::chrono::seconds kSensesEvery{5};

}  // namespace

Result<std::unique_ptr<FpgaReader>> FpgaReader::create(const FpgaHello& hello, const std::vector<std::byte*>& staging) {
  UniqueFd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return Error{Code::kExhausted, errno_error("making an eventfd", errno).message};
  const std::string place(hello.card, strnlen(hello.card, sizeof hello.card));
  MILLRACE_TRY(XrtCard card, XrtCard::open(place));
  std::unique_ptr<FpgaReader> reader(new FpgaReader(std::move(card), hello, std::move(wake)));
  const FpgaStaging layout{hello.encoded_bytes, hello.tensor_bytes};
  for (std::uint32_t i = 0; i < staging.size(); ++i)
    reader->lanes_.push_back({.socket = fpga_lane_socket(i),
                              .on_card = std::make_unique<CardLane>(i, staging[i], layout, reader->wake_.get())});
  MILLRACE_TRY_VOID(reader->program(hello.image));
  return reader;
}

FpgaReader::FpgaReader(XrtCard card, const FpgaHello& hello, UniqueFd wake)
    : card_(std::move(card)),
      folder_(hello.images, strnlen(hello.images, sizeof hello.images)),
      hang_(hello.hang_milliseconds),
      wake_(std::move(wake)),
      image_(hello.image),
      swap_(hello.swap) {}

// Buffers belong to what the card is programmed with. kNotFound: it does not take the image.
Result<void> FpgaReader::program(FpgaImage image) {
  for (Lane& lane : lanes_) lane.on_card->detach();
  MILLRACE_TRY_VOID(card_.program(folder_, image));
  image_ = image;
  for (Lane& lane : lanes_) MILLRACE_TRY_VOID(lane.on_card->attach(card_));
  return {};
}

Result<void> FpgaReader::run() {
  while (poll_all()) {
    const Result<void> stepped = step();
    if (stepped) continue;
    for (Lane& lane : lanes_) {
      if (lane.started) lane.on_card->abandon();
      if (lane.started || lane.waiting) answer(lane, stepped.error());
    }
    return stepped;
  }
  return {};
}

Result<void> FpgaReader::step() {
  MILLRACE_TRY_VOID(collect());
  return start_waiting();
}

// Waits for whatever is next. false: the daemon has closed its end.
bool FpgaReader::poll_all() {
  std::vector<pollfd> ready{{.fd = kFpgaControl, .events = POLLIN}, {.fd = wake_.get(), .events = POLLIN}};
  std::optional<Clock::time_point> due;
  for (const Lane& lane : lanes_) {
    ready.push_back({.fd = lane.socket, .events = static_cast<short>(lane.started || lane.waiting ? 0 : POLLIN)});
    if (lane.started && (!due || lane.due < *due)) due = lane.due;
  }
  const auto left = due ? std::chrono::ceil<std::chrono::milliseconds>(*due - Clock::now()).count() : -1;
  const int timeout = due ? static_cast<int>(std::clamp<std::int64_t>(left, 0, 1 << 30)) : -1;
  if (poll(ready.data(), ready.size(), timeout) < 0) return errno == EINTR;
  if (ready[0].revents != 0) return false;
  std::uint64_t times = 0;
  if (ready[1].revents != 0 && read(wake_.get(), &times, sizeof times) < 0 && errno != EAGAIN) return false;
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    if ((ready[i + 2].revents & (POLLERR | POLLHUP)) != 0) return false;
    if ((ready[i + 2].revents & POLLIN) != 0) receive(lanes_[i]);
  }
  return !ended_;
}

void FpgaReader::receive(Lane& lane) {
  FpgaBatch batch;
  const ssize_t bytes = recv(lane.socket, &batch, sizeof batch, MSG_DONTWAIT);
  if (bytes < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (bytes != static_cast<ssize_t>(sizeof batch)) {
    ended_ = true;
    return;
  }
  lane.waiting = batch;
  lane.number = batch.number;
}

// What has ended on the card. An error: it failed, or something is overdue.
Result<void> FpgaReader::collect() {
  for (Lane& lane : lanes_) {
    if (!lane.started) continue;
    if (!lane.on_card->has_ended()) {
      if (Clock::now() < lane.due) continue;
      return Error{Code::kUnavailable,
                   "the card has not finished a batch within " + std::to_string(hang_.count()) + " ms"};
    }
    MILLRACE_TRY(FpgaDone done, lane.on_card->finish());
    look_at_sensors();
    done.celsius = sensors_.celsius;
    done.milliwatts = sensors_.milliwatts;
    answer(lane, done);
  }
  return {};
}

// Batches for the image that is on the card begin; for a later one it is programmed as soon as nothing is under way.
Result<void> FpgaReader::start_waiting() {
  Lane* latest = nullptr;
  for (Lane& lane : lanes_) {
    if (!lane.waiting) continue;
    if (lane.waiting->swap > swap_) {
      if (latest == nullptr || lane.waiting->swap > latest->waiting->swap) latest = &lane;
      continue;
    }
    MILLRACE_TRY_VOID(start(lane));
  }
  if (latest == nullptr || !is_idle()) return {};
  MILLRACE_TRY_VOID(swap(*latest->waiting, *latest));
  return start_waiting();
}

Result<bool> FpgaReader::start(Lane& lane) {
  const FpgaBatch batch = *lane.waiting;
  if (batch.swap < swap_ || batch.image != image_) {
    answer(lane, Error{batch.swap < swap_ ? Code::kExhausted : Code::kNotFound,
                       batch.swap < swap_ ? "the card has been programmed for other images" : why_not_});
    return false;
  }
  Result<bool> started = lane.on_card->start(batch);
  if (!started && started.error().code == Code::kUnavailable) return started;
  if (!started)
    answer(lane, started.error());
  else if (!*started)
    answer(lane, FpgaDone{});
  else
    lane.waiting.reset();
  lane.started = started && *started;
  lane.due = Clock::now() + hang_;
  return lane.started;
}

// An image that the card does not take is not the end of it: the one before is tried again. Its batches are answered
// with kNotFound, and no more come.
Result<void> FpgaReader::swap(const FpgaBatch& batch, Lane& lane) {
  const FpgaImage before = image_;
  swap_ = batch.swap;
  if (batch.image == before) return {};
  const Result<void> programmed = program(batch.image);
  lane.swapped = programmed.has_value();
  if (programmed || programmed.error().code != Code::kNotFound) return programmed;
  why_not_ = programmed.error().message;
  const Result<void> back = program(before);
  return back ? back : Result<void>(Error{Code::kUnavailable, back.error().message});
}

bool FpgaReader::is_idle() const {
  return std::none_of(lanes_.begin(), lanes_.end(), [](const Lane& lane) { return lane.started; });
}

// They take a while to answer.
void FpgaReader::look_at_sensors() {
  if (Clock::now() - sensed_ < kSensesEvery) return;
  sensors_ = read_sensors(card_.device());
  sensed_ = Clock::now();
}

void FpgaReader::answer(Lane& lane, FpgaDone done) {
  done.number = lane.number;
  done.swapped = std::exchange(lane.swapped, false) ? 1 : 0;
  lane.waiting.reset();
  lane.started = false;
  ssize_t sent = 0;
  do {
    sent = send(lane.socket, &done, sizeof done, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
}

void FpgaReader::answer(Lane& lane, const Error& why) {
  FpgaDone done;
  done.code = static_cast<std::uint32_t>(why.code);
  std::memcpy(done.text, why.message.data(), std::min(why.message.size(), sizeof done.text - 1));
  answer(lane, done);
}

}  // namespace millrace::fpga
