#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/device_block.h"
