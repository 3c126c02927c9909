/// Marks functions that the host and a GPU share.
#pragma once

#if defined(__CUDACC__)
#define TRAINWRIGHT_HOST_DEVICE __host__ __device__
#else
#define TRAINWRIGHT_HOST_DEVICE
#endif
