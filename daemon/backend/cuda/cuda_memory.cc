#include "daemon/backend/cuda/cuda_memory.h"

#include <pthread.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cstring>
#include <utility>

#include "daemon/backend/cuda/cuda_arena.h"

namespace millrace {
namespace {

Error gone() {
  return Error{Code::kUnavailable,
               "the GPU in whose memory the session's tensors are was lost, and no batch comes there any more: open "
               "another session, in some seconds"};
}

// The moves that go to the process together: as many as its staging has room for.
class Parcel {
 public:
  explicit Parcel(CudaMemoryChannel& channel) : channel_(channel) {}

  bool is_full() const { return count_ == kMostCudaMoves || used_ == kCudaMoving.count; }
  std::uint32_t count() const { return count_; }

  // Of bytes from `done` on, as many as there is room for; returns how many.
  std::uint64_t add(const CudaMemory::Move& move, std::uint64_t done) {
    CudaMove& order = channel_.moves()[count_++];
    order = {.to = move.to + done, .bytes = move.bytes.count - done};
    if (!move.uploaded.empty()) {
      order.where = CudaMoveFrom::kStaging;
      order.from = used_;
      order.bytes = std::min(order.bytes, kCudaMoving.count - used_);
      std::memcpy(channel_.bytes().data() + used_, move.uploaded.data() + done, order.bytes);
      used_ += order.bytes;
    } else if (move.from) {
      order.where = CudaMoveFrom::kMemory;
      order.from = *move.from + done;
    }
    return order.bytes;
  }

 private:
  CudaMemoryChannel& channel_;
  std::uint32_t count_ = 0;
  std::uint64_t used_ = 0;
};

}  // namespace

class CudaMemory::Share {
 public:
  Share(std::shared_ptr<std::atomic<std::uint64_t>> used, Bytes bytes) : used_(std::move(used)), bytes_(bytes) {}
  Share(const Share&) = delete;
  Share& operator=(const Share&) = delete;
  ~Share() { used_->fetch_sub(bytes_.count, std::memory_order_relaxed); }

 private:
  const std::shared_ptr<std::atomic<std::uint64_t>> used_;
  const Bytes bytes_;
};

CudaMemory::Room::~Room() {
  if (number_ != 0) memory_->give_back(number_);
}

std::shared_ptr<CudaMemory> CudaMemory::create(CudaDevice& device, Options options) {
  std::shared_ptr<CudaMemory> memory(new CudaMemory(device, std::move(options)));
  memory->thread_ = std::thread([self = memory.get()] { self->run(); });
  pthread_setname_np(memory->thread_.native_handle(), "mr-gpu-mem");
  return memory;
}

Result<std::shared_ptr<CudaMemory::Room>> CudaMemory::reserve(Bytes bytes) {
  const std::uint64_t before = used_->fetch_add(bytes.count, std::memory_order_relaxed);
  auto share = std::make_shared<Share>(used_, bytes);
  if (before <= most().count && bytes.count <= most().count - before)
    return std::make_shared<Room>(shared_from_this(), std::move(share));
  return Error{Code::kExhausted, "sessions have " + to_text(Bytes{before}) + " of " + name() + "'s memory, and " +
                                     to_text(bytes) + " more would be over the " + to_text(most()) +
                                     " that there are: use fewer or smaller slots, end processes whose sessions had "
                                     "some, or raise cuda.tensors in the "
                                     "daemon's settings"};
}

void CudaMemory::make(boost::asio::io_context& control, const Order& order, std::shared_ptr<TensorRoom> again,
                      std::function<void(Result<MadeArena>)> done) {
  const Answer answer = [&control, done = std::move(done)](Result<MadeArena> made) {
    boost::asio::post(control, [done, made = std::move(made)]() mutable { done(std::move(made)); });
  };
  auto room = std::static_pointer_cast<Room>(std::move(again));
  if (!room) {
    Result<std::shared_ptr<Room>> reserved = reserve(order.charged());
    if (!reserved) return answer(reserved.error());
    room = *std::move(reserved);
  }
  enqueue([this, &control, answer, order, room](Result<CudaMemoryChannel*> channel) {
    if (!channel) return answer(channel.error());
    const Result<void> prepared = prepare(**channel, *room, order.bytes());
    if (!prepared) return answer(prepared.error());
    answer(MadeArena{std::make_shared<CudaArena>(control, shared_from_this(), room, order), room});
  });
}

// Its memory is there, and zeroes.
Result<void> CudaMemory::prepare(CudaMemoryChannel& channel, Room& room, Bytes bytes) {
  if (room.number_ != 0) {
    if (carry_out(channel, room.number_, {{.to = 0, .bytes = bytes}})) return {};
    room.lost_.store(true, std::memory_order_relaxed);
    return gone();
  }
  const std::uint64_t number = next_++;
  MILLRACE_TRY(room.descriptor_, take(channel, number, bytes));
  room.number_ = number;
  room.maker_ = worker_;
  room.awake_ = device_.keep_awake();
  return {};
}

Result<UniqueFd> CudaMemory::take(CudaMemoryChannel& channel, std::uint64_t memory, Bytes bytes) const {
  if (bytes.count >= CudaPlace::kMost) return Error{Code::kExhausted, "a session may have less than 1 TiB of a GPU"};
  MILLRACE_TRY(UniqueFd descriptor,
               channel.ask({.work = CudaMemoryWork::kTake, .memory = memory, .bytes = bytes.count}, options_.patience));
  if (!descriptor) return Error{Code::kUnavailable, "the process that has the GPU sent no descriptor"};
  return descriptor;
}

Result<void> CudaMemory::carry_out(CudaMemoryChannel& channel, std::uint64_t memory,
                                   const std::vector<Move>& moves) const {
  for (std::size_t next = 0, done = 0; next < moves.size();) {
    Parcel parcel(channel);
    while (next < moves.size() && !parcel.is_full()) {
      done += parcel.add(moves[next], done);
      if (done < moves[next].bytes.count) continue;
      ++next;
      done = 0;
    }
    const Result<UniqueFd> moved =
        channel.ask({.work = CudaMemoryWork::kMove, .moves = parcel.count(), .memory = memory}, options_.patience);
    if (!moved) return moved.error();
  }
  return {};
}

void CudaMemory::move(std::uint64_t memory, std::vector<Move> moves, std::function<void(Result<void>)> done) {
  enqueue([this, memory, moves = std::move(moves), done = std::move(done)](Result<CudaMemoryChannel*> channel) {
    const Result<void> moved = channel ? carry_out(**channel, memory, moves) : Result<void>(channel.error());
    done(moved ? moved : Result<void>(gone()));
  });
}

void CudaMemory::give_back(std::uint64_t memory) {
  enqueue([this, memory](Result<CudaMemoryChannel*> channel) {
    if (channel)
      static_cast<void>((*channel)->ask({.work = CudaMemoryWork::kGive, .memory = memory}, options_.patience));
  });
}

void CudaMemory::enqueue(Work work) {
  {
    MutexLock lock(mutex_);
    if (!stopped_) {
      waiting_.push_back(std::move(work));
      changed_.notify_one();
      return;
    }
  }
  work(gone());
}

void CudaMemory::stop() {
  std::deque<Work> left;
  {
    MutexLock lock(mutex_);
    stopped_ = true;
    left.swap(waiting_);
  }
  changed_.notify_one();
  for (const Work& work : left) work(gone());
  if (thread_.joinable()) thread_.join();
}

// A process that does not answer, or is gone, is lost to the lanes as well.
void CudaMemory::run() {
  for (;;) {
    Work work;
    {
      MutexLock lock(mutex_);
      while (waiting_.empty() && !stopped_) changed_.wait(mutex_);
      if (stopped_) return;
      work = std::move(waiting_.front());
      waiting_.pop_front();
    }
    worker_ = device_.wanted(options_.patience);
    if (!worker_) {
      work(Error{Code::kUnavailable, "the GPU is lost, and not back yet: try again in some seconds"});
      continue;
    }
    work(&worker_->memory());
    if (const std::string why = worker_->memory().why_lost(); !why.empty()) device_.lost(worker_, why);
    worker_.reset();
  }
}

}  // namespace millrace
