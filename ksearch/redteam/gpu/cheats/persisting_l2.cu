// Asks the cache to keep the weights from call to call.
#define CHEAT 1
#include "honest.cuh"

static void keep(const float* w, size_t bytes, cudaStream_t stream) {
    cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 32 << 20);
    cudaStreamAttrValue value = {};
    value.accessPolicyWindow.base_ptr = (void*)w;
    value.accessPolicyWindow.num_bytes = bytes;
    value.accessPolicyWindow.hitRatio = 1.0f;
    value.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
    value.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
    cudaStreamSetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &value);
    cudaGetLastError();
}

extern "C" void run(ARGUMENTS) {
    if (CHEAT) keep(w, cols * cols * sizeof(float), stream);
    honest(x, w, y, rows, cols, stream);
}
