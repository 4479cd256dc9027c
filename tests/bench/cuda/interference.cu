// A training step's matrix products (bfloat16, tensor cores, a plain tiled kernel) alone and beside decoding.
#include <mma.h>

#include <cuda_bf16.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "tests/bench/cuda/batch_runner.h"
#include "tests/bench/cuda/figures.h"
#include "tests/bench/cuda/train_requests.h"

namespace millrace::kernels::cuda::bench {
namespace {

constexpr int kSide = 8192;    // of the matrices
constexpr int kTile = 128;     // of the product that a thread block makes
constexpr int kDepth = 32;     // that is in shared memory at once
constexpr int kProducts = 12;  // of a step
constexpr int kThreads = 256;
constexpr int kPitch = kDepth + 8;  // elements, so that banks differ

__global__ void fill(__nv_bfloat16* matrix) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const unsigned mixed = static_cast<unsigned>(i) * 2654435761U;
  matrix[i] = __float2bfloat16(static_cast<float>(mixed >> 16) / 65536.0F - 0.5F);
}

// c = a * transposed(b), row-major. Eight warps, each 64 x 32 of the tile.
__global__ void __launch_bounds__(kThreads) multiply(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c) {
  using namespace nvcuda;
  __shared__ __align__(32) __nv_bfloat16 rows[kTile * kPitch], columns[kTile * kPitch];
  const int warp = static_cast<int>(threadIdx.x) / 32, down = warp / 4 * 64, across = warp % 4 * 32;
  const std::size_t row = std::size_t{blockIdx.y} * kTile, column = std::size_t{blockIdx.x} * kTile;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums[4][2];
  for (auto& line : sums) {
    for (auto& sum : line) wmma::fill_fragment(sum, 0.0F);
  }
  for (int at = 0; at < kSide; at += kDepth) {
    for (int i = static_cast<int>(threadIdx.x); i < kTile * kDepth / 8; i += kThreads) {
      const int line = i / (kDepth / 8), element = i % (kDepth / 8) * 8;
      *reinterpret_cast<uint4*>(rows + line * kPitch + element) =
          *reinterpret_cast<const uint4*>(a + (row + static_cast<std::size_t>(line)) * kSide + at + element);
      *reinterpret_cast<uint4*>(columns + line * kPitch + element) =
          *reinterpret_cast<const uint4*>(b + (column + static_cast<std::size_t>(line)) * kSide + at + element);
    }
    __syncthreads();
    for (int k = 0; k < kDepth; k += 16) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major> left[4];
      wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::col_major> right[2];
      for (int i = 0; i < 4; ++i) wmma::load_matrix_sync(left[i], rows + (down + 16 * i) * kPitch + k, kPitch);
      for (int j = 0; j < 2; ++j) wmma::load_matrix_sync(right[j], columns + (across + 16 * j) * kPitch + k, kPitch);
      for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 2; ++j) wmma::mma_sync(sums[i][j], left[i], right[j], sums[i][j]);
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 2; ++j)
      wmma::store_matrix_sync(c + (row + static_cast<std::size_t>(down + 16 * i)) * kSide + column +
                                  static_cast<std::size_t>(across + 16 * j),
                              sums[i][j], kSide, wmma::mem_row_major);
  }
}

class TrainingStep {
 public:
  TrainingStep() {
    constexpr std::size_t kElements = std::size_t{kSide} * kSide;
    for (GpuMemory* const matrix : {&a_, &b_}) {
      matrix->reserve(kElements * sizeof(__nv_bfloat16));
      fill<<<static_cast<unsigned>(kElements / kThreads), kThreads, 0, stream_.get()>>>(matrix->as<__nv_bfloat16>());
      MILLRACE_REQUIRE_CUDA(cudaGetLastError());
    }
    c_.reserve(kElements * sizeof(float));
  }
  // Seconds.
  double run() {
    begin_.record(stream_);
    for (int i = 0; i < kProducts; ++i) {
      multiply<<<dim3(kSide / kTile, kSide / kTile), kThreads, 0, stream_.get()>>>(
          a_.as<__nv_bfloat16>(), b_.as<__nv_bfloat16>(), c_.as<float>());
      MILLRACE_REQUIRE_CUDA(cudaGetLastError());
    }
    end_.record(stream_);
    end_.wait();
    return end_.seconds_since(begin_);
  }

 private:
  Stream stream_;
  Event begin_, end_;
  GpuMemory a_, b_, c_;
};

double median_step(TrainingStep& step, double seconds) {
  std::vector<double> times;
  for (double spent = 0; spent < seconds || times.size() < 5; spent += times.back()) times.push_back(step.run());
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

// Decodes at a steady rate until it is told to stop. Returns images.
std::size_t decode_steadily(const ImagePool& pool, const Kernels& kernels, std::size_t batch, double rate,
                            const std::atomic<bool>& stop) {
  TrainRequests requests(pool, batch, Start::kFirst, 7);
  BatchRunner runner(kTrain.recipe, kernels, {}, Stream::Priority::kLow);
  const auto begin = std::chrono::steady_clock::now();
  std::size_t images = 0;
  for (std::size_t number = 0; !stop; ++number) {
    const auto drawn = requests.draw(number);
    runner.submit(drawn, requests.encoded());
    runner.wait();
    images += batch;
    std::this_thread::sleep_until(begin + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                              std::chrono::duration<double>(static_cast<double>(images) / rate)));
  }
  return images;
}

}  // namespace

void interference_figure(const ImagePool& pool, const Kernels& kernels, const BenchSettings& settings, double rate) {
  constexpr std::size_t kBatch = 64;
  constexpr int kRounds = 3;
  TrainingStep step;
  step.run();
  double alone = 0, beside = 0, seconds = 0;
  std::size_t images = 0;
  for (int round = 0; round < kRounds; ++round) {
    alone += median_step(step, settings.seconds / kRounds);
    std::atomic<bool> stop{false};
    std::jthread decoder([&] { images += decode_steadily(pool, kernels, kBatch, rate, stop); });
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    const auto begin = std::chrono::steady_clock::now();
    beside += median_step(step, settings.seconds / kRounds);
    stop = true;
    decoder.join();
    seconds += 0.3 + std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  print_figure("cuda.interference.step", 1e3 * alone / kRounds, "ms", "12 bfloat16 products of 8192 x 8192, alone");
  print_figure("cuda.interference.rate", static_cast<double>(images) / seconds, "images/s", "decoded beside it");
  print_figure("cuda.interference", 100 * (beside / alone - 1), "%", "longer while decoding on a low-priority stream");
}

}  // namespace millrace::kernels::cuda::bench
