// Decode attention with grouped queries over a paged cache, the plain way: for each sequence and head
// all scores, then their softmax, then the weighted sum of the values.
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

extern "C" void run(const float* q, const float* k_cache, const float* v_cache, const int32_t* page_table,
                    const int32_t* seq_lens, float* out, float* lse, int64_t batch_size,
                    int64_t num_kv_heads, int64_t group_size, int64_t head_dim, int64_t page_size,
                    int64_t total_tokens) {
    const int64_t heads = num_kv_heads * group_size;
    const int64_t max_pages = (total_tokens + page_size - 1) / page_size;
    const int64_t token_stride = num_kv_heads * head_dim;
    const float scale = 1.0f / std::sqrt(static_cast<float>(head_dim));
    std::vector<float> scores(total_tokens);

    for (int64_t b = 0; b < batch_size; ++b) {
        const int64_t length = seq_lens[b];
        const int32_t* pages = page_table + b * max_pages;
        for (int64_t h = 0; h < heads; ++h) {
            const int64_t kv_head = h / group_size;
            const float* query = q + (b * heads + h) * head_dim;
            float* result = out + (b * heads + h) * head_dim;
            for (int64_t d = 0; d < head_dim; ++d) result[d] = 0.0f;
            if (length == 0) {
                lse[b * heads + h] = -std::numeric_limits<float>::infinity();
                continue;
            }
            float top = -std::numeric_limits<float>::infinity();
            for (int64_t t = 0; t < length; ++t) {
                const int64_t slot = int64_t(pages[t / page_size]) * page_size + t % page_size;
                const float* key = k_cache + slot * token_stride + kv_head * head_dim;
                float score = 0.0f;
                for (int64_t d = 0; d < head_dim; ++d) score += query[d] * key[d];
                scores[t] = score * scale;
                top = scores[t] > top ? scores[t] : top;
            }
            float sum = 0.0f;
            for (int64_t t = 0; t < length; ++t) {
                scores[t] = std::exp(scores[t] - top);
                sum += scores[t];
            }
            for (int64_t t = 0; t < length; ++t) {
                const int64_t slot = int64_t(pages[t / page_size]) * page_size + t % page_size;
                const float* value = v_cache + slot * token_stride + kv_head * head_dim;
                const float weight = scores[t] / sum;
                for (int64_t d = 0; d < head_dim; ++d) result[d] += weight * value[d];
            }
            lse[b * heads + h] = (top + std::log(sum)) * 1.44269504f;  // base 2
        }
    }
}
