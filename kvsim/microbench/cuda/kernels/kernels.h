// All kernels of the harness. The one header that NVRTC would be given.
#pragma once
#include "decode.h"
#include "device.h"
#include "kv_read.h"
#include "layer.h"
#include "prefill.h"
#include "stream.h"
