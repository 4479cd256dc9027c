#include "tests/bench/cuda/nvjpeg_peer.h"

#include <cuda_fp16.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "tests/bench/cuda/gpu_memory.h"

namespace millrace::kernels::cuda::bench {
namespace {

constexpr int kSide = 224;

struct Crop {
  const unsigned char* image;  // interleaved RGB
  int pitch;
  int left, top, width, height;
  bool flip;
};

struct Taps {
  int begin, end;
  float centre, unscale;
};

__device__ Taps taps_of(int i, int in) {
  const float scale = static_cast<float>(in) / kSide, support = fmaxf(scale, 1.0F);
  const float centre = (i + 0.5F) * scale;
  return {max(static_cast<int>(centre - support + 0.5F), 0), min(static_cast<int>(centre + support + 0.5F), in), centre,
          1.0F / support};
}

__device__ float weight_of(const Taps& taps, int i) {
  return fmaxf(0.0F, 1.0F - fabsf((i + 0.5F - taps.centre) * taps.unscale));
}

// Antialiased bilinear, a thread a pixel; block z is the image.
__global__ void resize(const Crop* crops, __half* tensors) {
  const int x = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int y = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y);
  if (x >= kSide || y >= kSide) return;
  const Crop crop = crops[blockIdx.z];
  const Taps across = taps_of(crop.flip ? kSide - 1 - x : x, crop.width), down = taps_of(y, crop.height);
  float sums[3] = {}, all = 0;
  for (int row = down.begin; row < down.end; ++row) {
    const unsigned char* const line = crop.image + static_cast<long>(crop.top + row) * crop.pitch + 3 * crop.left;
    for (int column = across.begin; column < across.end; ++column) {
      const float weight = weight_of(down, row) * weight_of(across, column);
      for (int c = 0; c < 3; ++c) sums[c] += weight * static_cast<float>(line[3 * column + c]);
      all += weight;
    }
  }
  const float means[3] = {0.485F, 0.456F, 0.406F}, deviations[3] = {0.229F, 0.224F, 0.225F};
  for (int c = 0; c < 3; ++c)
    tensors[(std::size_t{blockIdx.z} * 3 + static_cast<std::size_t>(c)) * kSide * kSide +
            static_cast<std::size_t>(y * kSide + x)] =
        __float2half((sums[c] / (all * 255.0F) - means[c]) / deviations[c]);
}

// A state, its stream and the pictures of a batch.
class Decoder {
 public:
  Decoder(const NvjpegLibrary& nvjpeg, NvjpegLibrary::Handle handle, const ImagePool& pool,
          const std::vector<std::size_t>& images, std::size_t batch, int cpu_threads)
      : nvjpeg_(nvjpeg), handle_(handle), pool_(pool), images_(images), batch_(batch) {
    crops_.reserve(batch * sizeof(Crop));
    crops_on_gpu_.reserve(batch * sizeof(Crop));
    tensors_.reserve(batch * 3 * kSide * kSide * sizeof(__half));
    usable_ =
        nvjpeg.create_state(handle, &state_) == 0 &&
        nvjpeg.begin_batched(handle, state_, static_cast<int>(batch), cpu_threads, NvjpegLibrary::kInterleavedRgb) == 0;
  }
  ~Decoder() {
    if (state_ != nullptr) nvjpeg_.destroy_state(state_);
  }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  // False: nvJPEG refused.
  bool submit(std::size_t number, std::mt19937& random) {
    wait();
    if (!usable_) return false;
    choose(number, random);
    if (nvjpeg_.decode_batched(handle_, state_, data_.data(), bytes_.data(), pictures_.data(), stream_.get()) != 0)
      return false;
    MILLRACE_REQUIRE_CUDA(cudaMemcpyAsync(crops_on_gpu_.data(), crops_.data(), batch_ * sizeof(Crop),
                                          cudaMemcpyHostToDevice, stream_.get()));
    const dim3 threads(32, 8), blocks(kSide / 32, kSide / 8, static_cast<unsigned>(batch_));
    resize<<<blocks, threads, 0, stream_.get()>>>(crops_on_gpu_.as<Crop>(), tensors_.as<__half>());
    MILLRACE_REQUIRE_CUDA(cudaGetLastError());
    done_.record(stream_);
    in_flight_ = true;
    return true;
  }
  void wait() {
    if (in_flight_) done_.wait();
    in_flight_ = false;
  }

 private:
  void choose(std::size_t number, std::mt19937& random) {
    data_.clear();
    bytes_.clear();
    pictures_.clear();
    std::vector<std::size_t> offsets;
    std::size_t all = 0;
    for (std::size_t i = 0; i < batch_; ++i) {
      const PooledImage& image = pool_.image(images_[(number * batch_ + i) % images_.size()]);
      offsets.push_back(all);
      all += (static_cast<std::size_t>(image.size.width) * image.size.height * 3 + 255) / 256 * 256;
    }
    pixels_.reserve(all);
    for (std::size_t i = 0; i < batch_; ++i) {
      const std::size_t at = images_[(number * batch_ + i) % images_.size()];
      const Size size = pool_.image(at).size;
      data_.push_back(pool_.file(at).data());
      bytes_.push_back(pool_.file(at).size());
      const auto pitch = static_cast<std::size_t>(size.width) * 3;
      pictures_.push_back({{pixels_.as<unsigned char>() + offsets[i], nullptr, nullptr, nullptr}, {pitch, 0, 0, 0}});
      const Box box = random_resized_crop(size, random);
      crops_.as<Crop>()[i] = {
          pictures_.back().channel[0], static_cast<int>(pitch), box.left, box.top, box.width, box.height,
          (random() & 1) != 0};
    }
  }

  const NvjpegLibrary& nvjpeg_;
  NvjpegLibrary::Handle handle_, state_ = nullptr;
  const ImagePool& pool_;
  const std::vector<std::size_t>& images_;
  const std::size_t batch_;
  Stream stream_;
  Event done_;
  bool usable_ = false, in_flight_ = false;
  PinnedMemory crops_;
  GpuMemory crops_on_gpu_, tensors_, pixels_;
  std::vector<const unsigned char*> data_;
  std::vector<std::size_t> bytes_;
  std::vector<NvjpegImage> pictures_;
};

// Images of the pool that the back end's batches take.
std::vector<std::size_t> supported_images(const NvjpegLibrary& nvjpeg, NvjpegLibrary::Handle handle,
                                          const ImagePool& pool) {
  NvjpegLibrary::Handle stream = nullptr;
  std::vector<std::size_t> images;
  if (nvjpeg.create_stream(handle, &stream) != 0) return images;
  std::vector<bool> takes(pool.distinct());
  for (std::size_t i = 0; i < takes.size() && i < pool.size(); ++i) {
    int refused = 1;
    takes[i] = nvjpeg.parse_stream(handle, pool.file(i).data(), pool.file(i).size(), 0, 0, stream) == 0 &&
               nvjpeg.batched_supported(handle, stream, &refused) == 0 && refused == 0;
  }
  for (std::size_t i = 0; i < pool.size(); ++i) {
    if (takes[i % takes.size()]) images.push_back(i);
  }
  nvjpeg.destroy_stream(stream);
  return images;
}

// A number of host threads, each with two batches; 0: it failed.
double rate_of(const NvjpegLibrary& nvjpeg, NvjpegLibrary::Handle handle, const ImagePool& pool,
               const std::vector<std::size_t>& images, const BenchSettings& settings, int threads) {
  std::atomic<std::size_t> next{0}, made{0};
  std::atomic<bool> counting{false}, stop{false}, failed{false};
  std::vector<std::jthread> workers;
  for (int worker = 0; worker < threads; ++worker) {
    workers.emplace_back([&, worker] {
      std::mt19937 random(static_cast<unsigned>(worker));
      std::unique_ptr<Decoder> decoders[2];
      for (auto& decoder : decoders)
        decoder = std::make_unique<Decoder>(nvjpeg, handle, pool, images, settings.batch / 2, settings.threads);
      for (std::size_t turn = 0; !stop && !failed; turn ^= 1) {
        if (!decoders[turn]->submit(next++, random)) failed = true;
        if (counting) made += settings.batch / 2;
      }
      for (auto& decoder : decoders) decoder->wait();
    });
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(std::max(1.0, settings.seconds / 4)));
  const auto begin = std::chrono::steady_clock::now();
  counting = true;
  std::this_thread::sleep_for(std::chrono::duration<double>(settings.seconds));
  counting = false;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  stop = true;
  workers.clear();
  return failed ? 0 : static_cast<double>(made) / seconds;
}

}  // namespace

double nvjpeg_figure(const NvjpegLibrary& nvjpeg, NvjpegBackend backend, const ImagePool& pool,
                     const BenchSettings& settings) {
  const char* const name = backend == NvjpegBackend::kHardware ? "peer.nvjpeg.hardware" : "peer.nvjpeg.cuda";
  NvjpegLibrary::Handle handle = nullptr;
  if (nvjpeg.create(static_cast<int>(backend), nullptr, nullptr, 0, &handle) != 0) {
    std::printf("%s: this GPU or driver has no such back end\n", name);
    return 0;
  }
  const auto images = supported_images(nvjpeg, handle, pool);
  double best = 0;
  for (const int threads : {1, 2, 4}) {
    if (!images.empty()) best = std::max(best, rate_of(nvjpeg, handle, pool, images, settings, threads));
  }
  nvjpeg.destroy(handle);
  char conditions[160];
  std::snprintf(conditions, sizeof conditions,
                "the same crops, best of 1, 2 and 4 threads; takes %.0f %% of the images",
                100.0 * static_cast<double>(images.size()) / static_cast<double>(pool.size()));
  print_figure(name, best, "images/s", conditions);
  return best;
}

}  // namespace millrace::kernels::cuda::bench
