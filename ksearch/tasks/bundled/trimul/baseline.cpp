// Triangle multiplication over outgoing edges, the plain way: one step of the definition after the other.
#include <cmath>
#include <cstdint>
#include <vector>

static void layer_norm(const float* in, const float* weight, const float* bias, float* out, int64_t size) {
    float mean = 0.0f, variance = 0.0f;
    for (int64_t c = 0; c < size; ++c) mean += in[c];
    mean /= static_cast<float>(size);
    for (int64_t c = 0; c < size; ++c) variance += (in[c] - mean) * (in[c] - mean);
    variance /= static_cast<float>(size);
    const float scale = 1.0f / std::sqrt(variance + 1e-5f);
    for (int64_t c = 0; c < size; ++c) out[c] = (in[c] - mean) * scale * weight[c] + bias[c];
}

// out[cols] = in[rows] * weight[rows][cols]
static void project(const float* in, const float* weight, float* out, int64_t rows, int64_t cols) {
    for (int64_t o = 0; o < cols; ++o) out[o] = 0.0f;
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t o = 0; o < cols; ++o) out[o] += in[r] * weight[r * cols + o];
}

static float sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }

extern "C" void run(const float* x, const float* mask, const float* norm_weight, const float* norm_bias,
                    const float* w_left, const float* w_right, const float* w_left_gate,
                    const float* w_right_gate, const float* w_out_gate, const float* out_norm_weight,
                    const float* out_norm_bias, const float* w_out, float* y, int64_t batch, int64_t n,
                    int64_t c, int64_t h) {
    const int64_t pairs = n * n;
    std::vector<float> left(pairs * h), right(pairs * h), gate(pairs * h), z(c), value(h), logit(h);
    for (int64_t b = 0; b < batch; ++b) {
        for (int64_t p = 0; p < pairs; ++p) {
            const float on = mask[b * pairs + p];
            layer_norm(x + (b * pairs + p) * c, norm_weight, norm_bias, z.data(), c);
            project(z.data(), w_left, value.data(), c, h);
            project(z.data(), w_left_gate, logit.data(), c, h);
            for (int64_t i = 0; i < h; ++i) left[p * h + i] = value[i] * on * sigmoid(logit[i]);
            project(z.data(), w_right, value.data(), c, h);
            project(z.data(), w_right_gate, logit.data(), c, h);
            for (int64_t i = 0; i < h; ++i) right[p * h + i] = value[i] * on * sigmoid(logit[i]);
            project(z.data(), w_out_gate, logit.data(), c, h);
            for (int64_t i = 0; i < h; ++i) gate[p * h + i] = sigmoid(logit[i]);
        }
        for (int64_t i = 0; i < n; ++i) {
            for (int64_t j = 0; j < n; ++j) {
                for (int64_t e = 0; e < h; ++e) value[e] = 0.0f;
                for (int64_t k = 0; k < n; ++k)
                    for (int64_t e = 0; e < h; ++e)
                        value[e] += left[(i * n + k) * h + e] * right[(j * n + k) * h + e];
                layer_norm(value.data(), out_norm_weight, out_norm_bias, logit.data(), h);
                for (int64_t e = 0; e < h; ++e) logit[e] *= gate[(i * n + j) * h + e];
                project(logit.data(), w_out, y + ((b * n + i) * n + j) * c, h, c);
            }
        }
    }
}
